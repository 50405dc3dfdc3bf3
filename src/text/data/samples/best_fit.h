// Best fit decreasing: items into few bins of one size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace teratron {

// Bin of each item. Items come in order of size, the largest first and equal ones as they stand; each goes into the bin
// with the least room that holds it, of several such bins into the one that got that little room last, or into a new
// one. Bins are numbered by the first of their items. Sizes lie between 1 and `capacity`. At most 11/9 of the fewest
// bins possible, and one more (Johnson, 1973). Time: O(items log capacity).
std::vector<std::int64_t> best_fit_decreasing(std::span<const std::int64_t> sizes, std::int64_t capacity);

}  // namespace teratron
