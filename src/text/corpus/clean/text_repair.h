// Repairs text as ftfy does.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// Repairs a text (valid UTF-8) line by line, each until nothing changes, by the rules of ftfy's default configuration
// in its order (README.md lists them and the differences): HTML's character references, unless a "<" came in this line
// or before; mojibake (mojibake.h); controls of Latin-1 as windows-1252; ligatures of Latin letters; full-width and
// half-width forms; straight quotes; line ends as "\n"; escape sequences of terminals and control
// characters removed; normalisation form C.
std::string repair_text(std::string_view text);

// Removes needless newlines: white space before a line end and at the end of the text goes, and empty lines at both
// ends; the first line keeps its indentation. Three line ends and more become two, and a single line end inside a
// sentence becomes a space. It is inside a sentence if a letter, a digit or a comma comes before it and a lower-case
// letter after it.
std::string remove_needless_newlines(std::string_view text);

}  // namespace teratron
