// Assigns documents to parts: in exact shares for `data split` and `data sample`, by an independent draw for the parts
// of training, which a corpus may outgrow.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace teratron {

// The size in which shares are measured, such as tokens. Without it each document counts as one.
using SizeOfDocument = std::function<std::int64_t(std::int64_t document)>;

// Assigns each document a part, an index into `weights` (all above zero, at most 255). Documents are laid end to end in
// a random order, a function of (seed, documents); each goes to the part whose share holds its middle. A part's size is
// thus off by at most half a document at each end; without sizes it is the rounded share. A part may be empty if its
// share is less than a document.
std::vector<std::uint8_t> choose_parts(std::int64_t documents, std::span<const double> weights, std::uint64_t seed,
                                       const SizeOfDocument& size_of = {});

// Draws a sample without replacement: 0 for a document of it, 1 for another. Documents are taken in a random order
// until their sizes are `wanted` or more. Without sizes these are `wanted` documents, and each set of that many is
// equally likely. If there is less, all are taken.
std::vector<std::uint8_t> choose_sample(std::int64_t documents, std::int64_t wanted, std::uint64_t seed,
                                        const SizeOfDocument& size_of = {});

// The part, an index into `weights`, of each of `documents` documents, by independent draws.
//
// Each document draws a number u in [0, 1) that depends on (seed, document) only, and gets the part whose share of the
// weights, laid end to end, holds u. So a document keeps its part when documents are appended. Shares are those of the
// weights up to chance: n draws with weight p have a standard deviation of sqrt(n p (1 - p)).
//
// A part with a weight above zero that got no document takes the one whose u is nearest to its share (the first of
// equals), from the parts that have more than one. Only such a document may change its part when the corpus grows.
// Requires at least as many documents as weights above zero.
std::vector<std::uint8_t> draw_parts(std::int64_t documents, std::span<const double> weights, std::uint64_t seed);

}  // namespace teratron
