// Texts as the Python programs that evaluate models edit them.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// str.strip(): without white space at both ends.
std::string_view strip(std::string_view text);

// str.replace(). `from` is not empty.
void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace teratron
