// Where a name to write or read leads: to a file, through its links, or to an open file of this process.
#pragma once

#include <filesystem>

namespace teratron {

// File that a chain of links leads to, and whether it can be replaced. A device, a pipe and an open file cannot.
struct WriteTarget {
  std::filesystem::path path;
  bool is_replaced = true;
};

// UserError: the links lead to one another.
WriteTarget write_target(const std::filesystem::path& first);

// Copy of the descriptor of this process that `path` names through any links: /dev/stdout, /dev/fd/3. It shares the
// flags and the place in the file. -1: `path` names none.
int copied_descriptor(const std::filesystem::path& path);

// Folder of a name: "." where it has none.
std::filesystem::path folder_of(const std::filesystem::path& path);

}  // namespace teratron
