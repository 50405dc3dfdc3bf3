// Check that an open file still has its name: another process may have deleted, renamed or replaced it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

namespace teratron {

enum class LastLink { kFollowed, kRefused };

// Whether `path` names the file that `descriptor` has open. `link`: a symbolic link at the end of `path` leads to its
// target, or names no file.
inline bool names_open_file(const std::filesystem::path& path, int descriptor, LastLink link) {
  struct stat opened {
  }, named{};
  const int flags = link == LastLink::kFollowed ? 0 : AT_SYMLINK_NOFOLLOW;
  return ::fstat(descriptor, &opened) == 0 && ::fstatat(AT_FDCWD, path.c_str(), &named, flags) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace teratron
