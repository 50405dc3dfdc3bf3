#include "data/split/document_choice.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/host/threads.h"
#include "base/permutation.h"
#include "base/philox.h"

namespace teratron {
namespace {

// Streams of RandomPurpose::kSplit; draw_parts() has 0.
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
  for (std::int64_t rank = 0; rank < documents; ++rank) {
    const std::int64_t document = order(rank);
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
  for (std::int64_t rank = 0; rank < documents && taken < wanted; ++rank) {
    const std::int64_t document = order(rank);
    parts[static_cast<std::size_t>(document)] = 0;
    taken += size_of ? size_of(document) : 1;
  }
  return parts;
}

namespace {

// Upper ends of the shares of the parts on [0, 1): part i has [ends[i - 1], ends[i]).
std::vector<double> share_ends(std::span<const double> weights) {
  std::vector<double> ends(weights.size());
  std::partial_sum(weights.begin(), weights.end(), ends.begin());
  const double total = ends.back();
  for (double& end : ends) end /= total;  // the last one is exactly 1
  return ends;
}

// Uniform in [0, 1) with 53 bits: a double holds each value exactly, and none rounds to 1.
double number_of(std::uint64_t seed, std::int64_t document) {
  const RandomStream stream{.seed = seed, .purpose = RandomPurpose::kSplit};
  const PhiloxCounter bits = stream.bits(static_cast<std::uint64_t>(document));
  return static_cast<double>((std::uint64_t{bits[0]} << 32 | bits[1]) >> 11) * 0x1p-53;
}

// The document to move to the empty part with the share [begin, end).
std::size_t nearest_document(std::span<const std::uint8_t> parts, std::span<const std::int64_t> sizes,
                             std::uint64_t seed, double begin, double end) {
  std::size_t nearest = parts.size();
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t document = 0; document < parts.size(); ++document) {
    if (sizes[parts[document]] < 2) continue;
    const double number = number_of(seed, static_cast<std::int64_t>(document));
    const double distance = std::max(begin - number, number - end);
    if (distance >= least) continue;
    least = distance;
    nearest = document;
  }
  check(nearest < parts.size(), "draw_parts: fewer documents than parts");
  return nearest;
}

}  // namespace

std::vector<std::uint8_t> draw_parts(std::int64_t documents, std::span<const double> weights, std::uint64_t seed) {
  const std::vector<double> ends = share_ends(weights);
  std::vector<std::uint8_t> parts(static_cast<std::size_t>(documents));
  parallel_for(documents, 4096, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t document = first; document < last; ++document) {
      const auto part = std::ranges::upper_bound(ends, number_of(seed, document)) - ends.begin();
      parts[static_cast<std::size_t>(document)] = static_cast<std::uint8_t>(part);
    }
  });
  std::vector<std::int64_t> sizes(weights.size());
  for (const std::uint8_t part : parts) ++sizes[part];
  for (std::size_t part = 0; part < weights.size(); ++part) {
    if (weights[part] <= 0 || sizes[part] > 0) continue;
    const std::size_t document = nearest_document(parts, sizes, seed, part > 0 ? ends[part - 1] : 0, ends[part]);
    --sizes[parts[document]];
    ++sizes[part];
    parts[document] = static_cast<std::uint8_t>(part);
  }
  return parts;
}

}  // namespace teratron
