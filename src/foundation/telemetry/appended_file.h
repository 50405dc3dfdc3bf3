// A file that grows at its end, so that other programs can follow it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace teratron {

class AppendedFile {
 public:
  static constexpr std::size_t kMostPending = std::size_t{16} << 20;

  // Opens `path`, a file, pipe or device, and makes it if it is missing; its folder must exist. EnvironmentError.
  explicit AppendedFile(std::filesystem::path path);
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  ~AppendedFile();

  // On return the bytes are in the file, for all readers. EnvironmentError, as AtomicFile's (base/files/file.h): then a
  // file has nothing of them, and they are written before those of the next call; of more than kMostPending such bytes
  // all are lost.
  void append(std::string_view bytes);

 private:
  std::filesystem::path path_;
  int descriptor_;
  bool is_file_;
  std::string pending_;
};

}  // namespace teratron
