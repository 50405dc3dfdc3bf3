// Writes to open files.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace teratron {

// write(2), again after a signal, and after waiting where another program that shares a pipe or terminal does not.
ssize_t write_some(int descriptor, std::string_view bytes);

// Replaces an open file's content, and brings it to the disk. Returns errno; 0: done.
int write_all(int descriptor, std::string_view content);

}  // namespace teratron
