// File that grows at its end, for other programs to follow.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace teratron {

class AppendedFile {
 public:
  static constexpr std::size_t kMostPending = std::size_t{16} << 20;

  // Opens a file, pipe or device. A missing file is made; its folder must exist. EnvironmentError.
  explicit AppendedFile(std::filesystem::path path);
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  ~AppendedFile();

  // Appends whole records: on return readers see all the bytes. EnvironmentError as AtomicFile's (base/files/file.h):
  // the file then has none of them, and the next call writes them first. If more than kMostPending bytes wait, all of
  // them are lost.
  void append(std::string_view bytes);

 private:
  std::filesystem::path path_;
  int descriptor_;
  bool is_file_;
  std::string pending_;
};

}  // namespace teratron
