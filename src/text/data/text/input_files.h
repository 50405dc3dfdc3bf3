// Which files a user means by the names given: files, folders, patterns, standard input.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

// In the order of `named`: a file as it is named (whether it can be read, its reader tells); "-", which may be named
// once; of a folder every file below it whose name has one of `endings`, in any case, or that and .gz or .zst, in the
// order of their paths' bytes, without hidden ones; of a pattern (*, ?, [...]) that no file bears as its name, what it
// matches, sorted. Links are followed, but for those that lead back to a folder they lie in. UserError: a folder or
// pattern that gives nothing, or cannot be read; nothing named.
inline constexpr std::array<std::string_view, 2> kTextEndings = {".txt", ".jsonl"};
std::vector<std::filesystem::path> find_input_files(std::span<const std::filesystem::path> named,
                                                    std::span<const std::string_view> endings = kTextEndings);

// The paths that a pattern (*, ?, [...]) matches, ordered by their bytes, whatever the user's language; none is no
// error. UserError: a folder of it cannot be read.
std::vector<std::filesystem::path> find_matches(const std::filesystem::path& pattern);

// Whether a path is a pattern: it has one of its characters, and no file or folder bears it as its name.
bool is_pattern(const std::filesystem::path& path);

// UserError unless `text`, a piece of a file's that begins `offset` bytes behind its start (of what it decompresses
// to), can be text: it has no NUL, and the file does not begin as UTF-16 does.
void require_text(std::string_view text, std::int64_t offset, const std::filesystem::path& file);

// UserError unless a whole text is UTF-8, with the place of the first byte that is not, and what to do.
void require_utf8(std::string_view text, const std::filesystem::path& file);

// Why a text is not UTF-8: its first byte that cannot stand there, and what the text seems to be.
std::string utf8_fault(std::string_view text);

// Whether a text or a line holds nothing but spaces, tabs and line ends.
inline bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

}  // namespace teratron
