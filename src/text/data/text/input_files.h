// Expands the names of input files: files, folders, patterns, standard input.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/content.h"

namespace teratron {

// The files in the order of `named`. A file stays as named (its reader checks it); "-" may be named once. A folder
// gives every file below it whose name has one of `endings`, in any case, also before .gz or .zst, in byte order of
// their paths, without hidden ones. A pattern (*, ?, [...]) that is no file's name gives its matches, sorted. Links are
// followed, except to a folder that contains them. UserError: a folder or pattern that gives nothing, or cannot be
// read; nothing named.
inline constexpr std::array<std::string_view, 3> kTextEndings = {".txt", ".jsonl", ".parquet"};
std::vector<std::filesystem::path> find_input_files(std::span<const std::filesystem::path> named,
                                                    std::span<const std::string_view> endings = kTextEndings);

// The paths that match a pattern (*, ?, [...]), in byte order, whatever the locale; none is no error. UserError: one of
// its folders cannot be read.
std::vector<std::filesystem::path> find_matches(const std::filesystem::path& pattern);

// Bytes of files together, without pipes. UserError: one is missing or cannot be read.
std::int64_t bytes_of_inputs(std::span<const std::filesystem::path> files);
// Bytes of a file; 0 of a pipe.
std::int64_t bytes_of_input(const std::filesystem::path& file);

// Whether a path is a pattern: it has one of its characters, and no file or folder has it as its name.
bool is_pattern(const std::filesystem::path& path);

// UserError unless `text`, part of a decompressed file from `offset` on, can be text: it has no NUL, and the file does
// not begin like UTF-16.
void require_text(std::string_view text, std::int64_t offset, const std::filesystem::path& file);

// UserError unless a whole text is UTF-8, with the offset of the first invalid byte, and what to do. `format_flag`: as
// require_readable().
void require_utf8(std::string_view text, const std::filesystem::path& file, std::string_view format_flag = kFormatFlag);

// Why a text is not UTF-8: its first invalid byte, and its apparent encoding.
std::string utf8_fault(std::string_view text);

// The text from its first character on that is no space, tab or line end.
inline std::string_view without_leading_space(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}
// Whether a text or a line has no such character.
inline bool is_blank(std::string_view text) { return without_leading_space(text).empty(); }

}  // namespace teratron
