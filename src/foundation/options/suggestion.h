// Suggestions for misspelled names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace teratron {

// Fewest single-character insertions, deletions, substitutions and swaps of neighbours between two words (optimal
// string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// Nearest of `names`, else one that begins with `name`, else the longest that it begins with; empty: none is near
// enough.
std::string nearest_name(std::string_view name, std::span<const std::string> names);

}  // namespace teratron
