// A file that grows at its end, so that other programs can follow it.
#pragma once

#include <filesystem>
#include <string_view>

namespace teratron {

class AppendedFile {
 public:
  // Opens `path`, a file, pipe or device, and makes it if it is missing; its folder must exist. EnvironmentError.
  explicit AppendedFile(std::filesystem::path path);
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  ~AppendedFile();

  // On return the bytes are in the file, for all readers. EnvironmentError.
  void append(std::string_view bytes) const;

 private:
  std::filesystem::path path_;
  int descriptor_;
};

}  // namespace teratron
