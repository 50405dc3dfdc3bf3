#include "corpus/dedup/minhash.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/philox.h"

namespace teratron {
namespace {

// Constants of 32-bit functions, f(x) = ((x ^ flip) * odd), its high half mixed in, * other_odd.
constexpr std::int64_t kBlock = 16;  // functions whose minima stay in registers
constexpr std::int64_t kFunctions = (kMinHashes + kBlock - 1) / kBlock * kBlock;
struct HashFunctions {
  std::array<std::uint32_t, kFunctions> flip, odd, other_odd;
};

const HashFunctions& hash_functions() {
  static const HashFunctions made = [] {
    HashFunctions functions{};
    RandomSequence random(RandomStream{.seed = 0x5EED});
    const auto word = [&] { return static_cast<std::uint32_t>(random.below(std::uint64_t{1} << 32)); };
    for (std::size_t i = 0; i < kFunctions; ++i) {
      functions.flip[i] = word();
      functions.odd[i] = word() | 1;
      functions.other_odd[i] = word() | 1;
    }
    return functions;
  }();
  return made;
}

}  // namespace

double BandShape::meeting_probability(double similarity) const {
  return 1 - std::pow(1 - std::pow(similarity, static_cast<double>(rows)), static_cast<double>(bands));
}

BandShape band_shape(double threshold) {
  constexpr double kWanted = 0.99;
  BandShape best{.bands = kMinHashes, .rows = 1};
  for (std::int64_t rows = 2; rows <= kMinHashes; ++rows) {
    const BandShape shape{.bands = kMinHashes / rows, .rows = rows};
    if (shape.meeting_probability(threshold) < kWanted) break;
    best = shape;
  }
  return best;
}

// Mixes two halves of an element into 32 bits first; the functions are cheap and run over all minima at once.
std::vector<std::uint32_t> min_hashes(std::span<const std::uint64_t> elements, std::int64_t count) {
  check(count > 0 && count <= kMinHashes, "min_hashes: count");
  const HashFunctions& functions = hash_functions();
  std::array<std::uint32_t, kFunctions> minima;
  minima.fill(std::numeric_limits<std::uint32_t>::max());
  for (std::int64_t first = 0; first < count; first += kBlock) {
    std::array<std::uint32_t, kBlock> least, flip, odd, other_odd;
    least.fill(std::numeric_limits<std::uint32_t>::max());
    std::copy_n(functions.flip.begin() + first, kBlock, flip.begin());
    std::copy_n(functions.odd.begin() + first, kBlock, odd.begin());
    std::copy_n(functions.other_odd.begin() + first, kBlock, other_odd.begin());
    for (const std::uint64_t element : elements) {
      const auto value = static_cast<std::uint32_t>((element * 0x9E3779B97F4A7C15ULL) >> 32);
      for (std::size_t i = 0; i < kBlock; ++i) {
        std::uint32_t hash = (value ^ flip[i]) * odd[i];
        hash = (hash ^ (hash >> 15)) * other_odd[i];
        least[i] = std::min(least[i], hash);
      }
    }
    std::ranges::copy(least, minima.begin() + first);
  }
  return {minima.begin(), minima.begin() + count};
}

std::vector<std::uint64_t> band_hashes(std::span<const std::uint64_t> elements, BandShape shape) {
  if (elements.empty()) return {};
  const std::vector<std::uint32_t> minima = min_hashes(elements, shape.bands * shape.rows);
  std::vector<std::uint64_t> hashes;
  for (std::int64_t band = 0; band < shape.bands; ++band) {
    hashes.push_back(::XXH3_64bits_withSeed(minima.data() + band * shape.rows,
                                            static_cast<std::size_t>(shape.rows) * sizeof(std::uint32_t),
                                            static_cast<std::uint64_t>(band)));
  }
  return hashes;
}

double jaccard(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  std::size_t both = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) {
      ++both;
      ++i;
      ++j;
    } else if (a[i] < b[j]) {
      ++i;
    } else {
      ++j;
    }
  }
  const std::size_t either = a.size() + b.size() - both;
  return either == 0 ? 0 : static_cast<double>(both) / static_cast<double>(either);
}

}  // namespace teratron
