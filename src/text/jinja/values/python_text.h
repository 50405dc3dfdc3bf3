// Methods of Python's str, by characters of UTF-8 (docs.python.org, Text Sequence Type). Case follows Unicode's simple
// mappings; a character with a longer one is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace teratron::jinja {

using Pieces = std::vector<std::string_view>;

// Offset of the first or the last occurrence of `sub`, else npos. Both take a time that is linear in the text's length.
std::size_t find_first(std::string_view text, std::string_view sub);
std::size_t find_last(std::string_view text, std::string_view sub);
bool is_white_space(char32_t code);
// Whether a character may stand in a name (str.isidentifier()), as its first one or a later one.
bool stands_in_name(char32_t code, bool first);
// str.strip(), lstrip(), rstrip(); without `characters`: of white space.
std::string_view stripped(std::string_view text, std::optional<std::string_view> characters = {}, bool left = true,
                          bool right = true);
// str.split(separator, most) and rsplit(); without a separator: at white space. most < 0: everywhere. Error: an empty
// separator, or more pieces than a list may have.
Pieces split(std::string_view text, std::optional<std::string_view> separator, std::int64_t most, bool from_right);
// Removes the first line of a text with its end, and returns it.
std::string_view take_line(std::string_view& text, bool keep_end = false);
// str.splitlines(), with or without the lines' ends. Error: more lines than a list may have.
Pieces split_lines(std::string_view text, bool keep_ends = false);
// str.replace(); count < 0: all.
std::string replaced(std::string_view text, std::string_view old, std::string_view with, std::int64_t count);
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalized(std::string_view text);
// str.title(): a letter after none is in upper case.
std::string title(std::string_view text);
// repr(): in quotes, with escapes.
std::string repr_of_text(std::string_view text);
// int() and float() of a text in decimal. Nothing: it is no number. Error: an integer beyond 64 bits.
std::optional<std::int64_t> integer_of(std::string_view text);
std::optional<double> real_of(std::string_view text);
// repr() of a float: the shortest digits that give it back.
std::string written(double number);

}  // namespace teratron::jinja
