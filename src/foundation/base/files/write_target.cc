#include "base/files/write_target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <system_error>

#include "base/files/file.h"

namespace teratron {
namespace {

// Last link of a chain that leads to an open file of a process, in whose folder of /proc it stands; else the chain's
// end.
struct ChainEnd {
  std::filesystem::path path, process_folder;  // empty folder: no open file
};

ChainEnd end_of_links(const std::filesystem::path& first) {
  constexpr int kMostLinks = 40;  // the system's own limit
  std::filesystem::path path = first;
  std::error_code error;
  for (int links = 0; links < kMostLinks && std::filesystem::is_symlink(path, error); ++links) {
    // /dev/stdout and /dev/fd/3 lead to open files, whose names may belong to other files by now. /dev/fd is a link.
    const std::filesystem::path folder = std::filesystem::canonical(folder_of(path), error);
    if (folder.string().starts_with("/proc/")) return {path, folder};
    const std::filesystem::path link = std::filesystem::read_symlink(path, error);
    path = link.is_absolute() ? link : path.parent_path() / link;
  }
  return {path, {}};
}

}  // namespace

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

WriteTarget write_target(const std::filesystem::path& first) {
  struct stat status {};
  const bool is_there = ::stat(first.c_str(), &status) == 0;
  if (is_there && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return {first, false};
  const ChainEnd end = end_of_links(first);
  if (!end.process_folder.empty()) return {end.path, false};
  std::error_code error;
  if (std::filesystem::is_symlink(end.path, error)) throw_link_loop(first);
  return {end.path, true};
}

int copied_descriptor(const std::filesystem::path& path) {
  const ChainEnd end = end_of_links(path);
  if (end.process_folder != fmt::format("/proc/{}/fd", ::getpid())) return -1;
  return ::fcntl(std::atoi(end.path.filename().c_str()), F_DUPFD_CLOEXEC, 0);
}

}  // namespace teratron
