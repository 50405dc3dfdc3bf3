// Text as the str of Python 3 treats it, which SQuAD's official scripts are written with.
#pragma once

#include <string>
#include <string_view>

namespace teratron::squad {

// str.lower(): Unicode's full lower case. "\u0130" becomes two characters, and a capital sigma that ends a word the
// final one: a cased letter stands before it and none behind, whatever marks and apostrophes lie between.
std::u32string python_lower(std::u32string_view text);

// White space of str.split(): Unicode's, and the separators U+001C to U+001F.
bool is_python_space(char32_t code);

// \w of patterns: letters, numbers and the underscore; no marks.
bool is_python_word(char32_t code);

}  // namespace teratron::squad
