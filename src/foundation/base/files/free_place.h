// Checks of files before a command writes them.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace teratron {

// UserError: one of `files` exists already, and `overwrite` is false. Pipes, devices, standard output ("-") and empty
// paths are ignored.
void require_free(std::span<const std::filesystem::path> files, bool overwrite);

// UserError: one of `written` is one of `read` ("-" is standard input, which may be a file), or occurs twice. Links are
// resolved. Pipes, devices, standard output ("-") and empty paths among `written` are ignored.
void require_separate(std::span<const std::filesystem::path> read, std::span<const std::filesystem::path> written);

// UserError: nothing can be written to `file`, even if its folders are made: a file stands where one of them must be,
// or symbolic links lead to one another. In a job of several processes only the first one checks.
void require_place(const std::filesystem::path& file);

// Checks that a result can be written to `file` later. UserError: as require_place(), its folder is missing, or a
// folder has that name. EnvironmentError: its folder is read-only. No file changes. A full disk may pass; pipes and
// devices are not opened. In a job of several processes only the first one checks.
void require_writable(const std::filesystem::path& file);

// Lets pictures and traces replace earlier ones of their kind. UserError: `file` is neither empty nor begins with
// `beginning`, as files of its kind do. Other errors are those of require_writable(). `kind`: for the message, "trace
// of teratron".
void require_replaceable(const std::filesystem::path& file, std::string_view kind, std::string_view beginning);

}  // namespace teratron
