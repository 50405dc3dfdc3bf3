// Text of people and of files on a terminal: its columns, and its control characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace teratron {

// Columns that `text` takes on a terminal: two for each wide character of UTF-8, one for each other.
std::size_t display_width(std::string_view text);

// The first characters of `text` that fit into so many columns.
std::string_view first_columns(std::string_view text, std::size_t columns);

// Replaces control characters of a message, which would truncate it (zero) or control the terminal, by "\x1b" and the
// like. Line ends and tabs stay.
std::string printable(std::string_view message);

}  // namespace teratron
