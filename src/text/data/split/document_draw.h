// Which part of a corpus each document is drawn into.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace teratron {

// The part, an index into `weights`, of every document 0, 1, ..., `documents` - 1.
//
// Each document draws a number u in [0, 1) that depends on (seed, document) alone, and falls into the part whose share
// of the weights, laid end to end, holds u. So a document keeps its part when documents are added behind the last one.
// Shares are those of the weights up to chance: n draws with a weight of p have a standard deviation of
// sqrt(n p (1 - p)).
//
// A part with a weight above zero that no document fell into takes the one whose u lies nearest to the part's share
// (the first of equals), out of the parts that have more than one. Only such a document may change its part when the
// corpus grows. Requires at least as many documents as weights above zero.
std::vector<std::uint8_t> draw_parts(std::int64_t documents, std::span<const double> weights, std::uint64_t seed);

}  // namespace teratron
