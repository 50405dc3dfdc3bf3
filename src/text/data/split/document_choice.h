// Which documents go into which part, in exact shares: for `data split` and `data sample`. (Training draws its parts by
// document_draw.h, whose shares are exact up to chance, and which a corpus may grow under.)
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace teratron {

// The size that shares are measured in: a document's tokens, say. Without it each counts as one.
using SizeOfDocument = std::function<std::int64_t(std::int64_t document)>;

// The part, an index into `weights` (all above zero, 255 at most), of each document. Documents are taken in a random
// order, a function of (seed, documents), and laid end to end; a document goes to the part whose share of the whole
// holds its middle. So each part is off its share by half a document at each of its two ends at most; without sizes it
// has the documents of its share, rounded. A part may be empty where its share is less than a document.
std::vector<std::uint8_t> choose_parts(std::int64_t documents, std::span<const double> weights, std::uint64_t seed,
                                       const SizeOfDocument& size_of = {});

// A sample without replacement: 0 for a document of it, 1 for another. Documents are taken in a random order until
// their sizes are `wanted` or more; without sizes these are `wanted` documents, and each set of so many is equally
// likely. Where there is less, all are taken.
std::vector<std::uint8_t> choose_sample(std::int64_t documents, std::int64_t wanted, std::uint64_t seed,
                                        const SizeOfDocument& size_of = {});

}  // namespace teratron
