// What the user probably meant: the known name nearest to one that is unknown.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace teratron {

// The fewest single-character insertions, deletions, substitutions and swaps of neighbours between two words
// (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of `names`, or the one that `name` is the beginning of; empty if none is near enough to be meant.
std::string nearest_name(std::string_view name, std::span<const std::string> names);

}  // namespace teratron
