// Text as it was meant: what ftfy calls fixing it.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// Repairs a text (valid UTF-8) line by line, each until nothing changes, by the rules of ftfy's default configuration
// in its order (README.md says which of them we have, and where we differ): HTML's character references, unless a "<"
// came up in this line or before; mojibake (mojibake.h); controls of Latin-1 as windows-1252; ligatures of Latin
// letters; full-width and half-width forms; straight quotes; line ends as "\n"; escape sequences of terminals and
// control characters removed; normalisation form C.
std::string repair_text(std::string_view text);

// Needless newlines: white space before a line end and around the text goes, three line ends and more become two, and a
// single line end inside of a sentence becomes a space. That is one behind a letter, a digit or a comma, with a small
// letter behind it.
std::string remove_needless_newlines(std::string_view text);

}  // namespace teratron
