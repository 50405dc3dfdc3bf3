#include "data/split/document_choice.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "data/samples/permutation.h"

namespace teratron {
namespace {

// Streams of RandomPurpose::kSplit; document_draw.cc has 0.
constexpr std::uint32_t kExactParts = 1, kSample = 2;

RandomPermutation random_order(std::int64_t documents, std::uint64_t seed, std::uint32_t stream) {
  return {documents, RandomStream{.seed = seed, .purpose = RandomPurpose::kSplit, .stream = stream}};
}

}  // namespace

std::vector<std::uint8_t> choose_parts(std::int64_t documents, std::span<const double> weights, std::uint64_t seed,
                                       const SizeOfDocument& size_of) {
  check(!weights.empty() && weights.size() <= std::numeric_limits<std::uint8_t>::max(), "choose_parts: weights");
  double total = 0;
  for (std::int64_t document = 0; document < documents; ++document) {
    total += size_of ? static_cast<double>(size_of(document)) : 1;
  }
  std::vector<double> ends(weights.size());  // of the parts
  std::partial_sum(weights.begin(), weights.end(), ends.begin());
  for (const double sum = ends.back(); double& end : ends) end *= total / sum;
  ends.back() = std::numeric_limits<double>::infinity();

  const RandomPermutation order = random_order(documents, seed, kExactParts);
  std::vector<std::uint8_t> parts(static_cast<std::size_t>(documents));
  double before = 0;  // whole numbers: exact
  std::uint8_t part = 0;
  for (std::int64_t place = 0; place < documents; ++place) {
    const std::int64_t document = order(place);
    const double size = size_of ? static_cast<double>(size_of(document)) : 1;
    while (before + size / 2 >= ends[part]) ++part;
    parts[static_cast<std::size_t>(document)] = part;
    before += size;
  }
  return parts;
}

std::vector<std::uint8_t> choose_sample(std::int64_t documents, std::int64_t wanted, std::uint64_t seed,
                                        const SizeOfDocument& size_of) {
  const RandomPermutation order = random_order(documents, seed, kSample);
  std::vector<std::uint8_t> parts(static_cast<std::size_t>(documents), 1);
  std::int64_t taken = 0;
  for (std::int64_t place = 0; place < documents && taken < wanted; ++place) {
    const std::int64_t document = order(place);
    parts[static_cast<std::size_t>(document)] = 0;
    taken += size_of ? size_of(document) : 1;
  }
  return parts;
}

}  // namespace teratron
