// A folder that is empty or new, until a converted model is whole in it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

// While files are written, a locked file (kUnfinished) in the folder lists them. On an error the destructor deletes
// them; after a kill, the next export does. Nothing else is deleted.
class ExportFolder {
 public:
  static constexpr std::string_view kUnfinished = "teratron-convert.unfinished";

  // `files` are those that will be written. Makes the folder where there is none. UserError: it holds something else,
  // or another process is writing there. EnvironmentError.
  ExportFolder(std::filesystem::path folder, std::vector<std::string> files);
  ExportFolder(const ExportFolder&) = delete;
  ExportFolder& operator=(const ExportFolder&) = delete;
  ~ExportFolder();

  void finish();  // what was written stays, durably

 private:
  void begin();
  void check_holds_only(const std::vector<std::string>& ours) const;
  void remove_files(const std::vector<std::string>& files) const;

  const std::filesystem::path folder_, unfinished_;
  const std::vector<std::string> files_;
  bool was_there_ = false, finished_ = false;
  int descriptor_ = -1;
};

}  // namespace teratron
