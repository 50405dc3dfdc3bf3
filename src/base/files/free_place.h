// What a command is to write, where something may stand.
#pragma once

#include <filesystem>
#include <span>

namespace teratron {

// UserError where one of `files` is a file already, unless the user has said that it may be replaced. Pipes, devices,
// standard output ("-") and empty paths are no files that could be lost.
void require_free(std::span<const std::filesystem::path> files, bool overwrite);

}  // namespace teratron
