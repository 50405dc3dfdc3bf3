// Standard input under its names.
#pragma once

#include <filesystem>

namespace teratron {

// Whether `path` is "-" or what the system calls standard input, as /dev/stdin.
bool names_standard_input(const std::filesystem::path& path);

}  // namespace teratron
