// MinHash sketches, whose share of equal minima estimates the similarity of sets (Broder 1997), cut into bands so that
// similar sets share one (Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace teratron {

// `bands` runs of `rows` minima each.
struct BandShape {
  std::int64_t bands = 0, rows = 0;
  // The probability that sets of this Jaccard similarity s agree in a whole band: 1 - (1 - s^rows)^bands. In 26 bands
  // of 5: 0.0614 for s = 0.3, 0.562 (0.5), 0.878 (0.6), 0.992 (0.7), 0.9991 (0.75), 0.99997 (0.8), 1.000 (0.9).
  double meeting_probability(double similarity) const;
};

inline constexpr std::int64_t kMinHashes = 130;  // at most; 26 bands of 5 suit a threshold of 0.7

// The shape with the most rows in which sets of similarity `threshold` (0.3 to 1) share a band with probability 0.99,
// with at most kMinHashes minima. More rows make fewer dissimilar sets share one.
BandShape band_shape(double threshold);

// A hash for each band of its minima over the elements of a set; none for an empty set. Elements are hashes of 64 bits;
// repeated ones make no difference.
std::vector<std::uint64_t> band_hashes(std::span<const std::uint64_t> elements, BandShape shape);

// The minima, at most kMinHashes.
std::vector<std::uint32_t> min_hashes(std::span<const std::uint64_t> elements, std::int64_t count);

// |A and B| / |A or B| of two sorted sets without repetitions; 0 if both are empty.
double jaccard(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b);

}  // namespace teratron
