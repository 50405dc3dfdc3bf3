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

Pieces characters_of(std::string_view text);
bool is_white_space(char32_t code);
// str.isidentifier() of a character, which is a name's first one or a later one.
bool stands_in_name(char32_t code, bool first);
// str.strip(), lstrip(), rstrip(); without `characters`: of white space.
std::string_view stripped(std::string_view text, std::optional<std::string_view> characters = {}, bool left = true,
                          bool right = true);
// str.split(separator, most) and rsplit(); without a separator: at white space. most < 0: at all. Error: an empty one;
// there are more pieces than a list has elements.
Pieces split(std::string_view text, std::optional<std::string_view> separator, std::int64_t most, bool from_right);
// The first line of a text, which goes from it with its end.
std::string_view take_line(std::string_view& text, bool keep_end = false);
// str.splitlines(): without their ends, or with them. Error: there are more lines than a list has elements.
Pieces split_lines(std::string_view text, bool keep_ends = false);
// str.replace(); count < 0: all.
std::string replaced(std::string_view text, std::string_view old, std::string_view with, std::int64_t count);
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalized(std::string_view text);
// str.title(): upper case after what is no letter.
std::string title(std::string_view text);
// repr(): in quotes, with escapes.
std::string repr_of_text(std::string_view text);
// repr() of a float: the shortest digits that give it back.
std::string written(double number);

}  // namespace teratron::jinja
