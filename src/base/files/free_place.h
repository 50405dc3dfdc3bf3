// What a command is to write, where something may stand.
#pragma once

#include <filesystem>
#include <span>

namespace teratron {

// UserError where one of `files` is a file already, unless the user has said that it may be replaced. Pipes, devices,
// standard output ("-") and empty paths are no files that could be lost.
void require_free(std::span<const std::filesystem::path> files, bool overwrite);

// UserError where one of `written` is one of `read` ("-" is standard input, which may be a file) or is written already,
// links resolved. Pipes, devices, standard output ("-") and empty paths among `written` are no files that could be
// lost.
void require_separate(std::span<const std::filesystem::path> read, std::span<const std::filesystem::path> written);

}  // namespace teratron
