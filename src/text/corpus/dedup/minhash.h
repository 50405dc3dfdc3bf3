// Sketches of sets whose equal parts tell how alike the sets are (Broder 1997), cut into bands so that alike sets meet
// (Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace teratron {

// `bands` runs of `rows` minima each.
struct BandShape {
  std::int64_t bands = 0, rows = 0;
  // The probability that sets of this Jaccard similarity agree in a whole band: 1 - (1 - s^rows)^bands.
  double meeting_probability(double similarity) const;
};

inline constexpr std::int64_t kMinHashes = 130;  // at most, in a sketch: 26 bands of 5 suit a threshold of 0.7

// As many rows as let sets that are just as alike as `threshold` meet with probability 0.99, with kMinHashes minima at
// most. More rows make fewer sets meet that are not alike. `threshold`: 0.3 to 1.
BandShape band_shape(double threshold);

// For each band a hash of its minima over the elements of a set; none of an empty set. Elements are hashes of 64 bits;
// those that occur twice make no difference.
std::vector<std::uint64_t> band_hashes(std::span<const std::uint64_t> elements, BandShape shape);

// The minima themselves, kMinHashes at most.
std::vector<std::uint32_t> min_hashes(std::span<const std::uint64_t> elements, std::int64_t count);

// |A and B| / |A or B| of two sorted sets without repetitions; 0 where both are empty.
double jaccard(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b);

}  // namespace teratron
