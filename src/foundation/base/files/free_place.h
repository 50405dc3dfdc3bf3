// What a command is to write, where something may stand.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace teratron {

// UserError where one of `files` is a file already, unless the user has said that it may be replaced. Pipes, devices,
// standard output ("-") and empty paths are no files that could be lost.
void require_free(std::span<const std::filesystem::path> files, bool overwrite);

// UserError where one of `written` is one of `read` ("-" is standard input, which may be a file) or is written already,
// links resolved. Pipes, devices, standard output ("-") and empty paths among `written` are no files that could be
// lost.
void require_separate(std::span<const std::filesystem::path> read, std::span<const std::filesystem::path> written);

// Whether a result could be written to `file` in the end, told before the work. EnvironmentError: it could not, as in a
// folder that is missing or cannot be written, or where a folder has that name. No file changes. A full disk may pass,
// pipes and devices are not opened, and of the processes of a job only the first one looks.
void require_writable(const std::filesystem::path& file);

// For pictures and traces, which are drawn anew from what stays: UserError where `file` is a file that does not begin
// with `beginning`, as an earlier one of its kind does, nor is empty; EnvironmentError as require_writable. `kind`:
// "trace of teratron", for the message.
void require_replaceable(const std::filesystem::path& file, std::string_view kind, std::string_view beginning);

}  // namespace teratron
