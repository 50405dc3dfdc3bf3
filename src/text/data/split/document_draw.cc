#include "data/split/document_draw.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/host/threads.h"
#include "base/philox.h"

namespace teratron {
namespace {

// The shares of the parts on [0, 1): part i has [ends[i - 1], ends[i]).
std::vector<double> share_ends(std::span<const double> weights) {
  std::vector<double> ends(weights.size());
  std::partial_sum(weights.begin(), weights.end(), ends.begin());
  const double total = ends.back();
  for (double& end : ends) end /= total;  // the last one is exactly 1
  return ends;
}

// Uniform in [0, 1), of 53 bits: a double holds each value exactly, and none rounds to 1.
double number_of(std::uint64_t seed, std::int64_t document) {
  const RandomStream stream{.seed = seed, .purpose = RandomPurpose::kSplit};
  const PhiloxCounter bits = stream.bits(static_cast<std::uint64_t>(document));
  return static_cast<double>((std::uint64_t{bits[0]} << 32 | bits[1]) >> 11) * 0x1p-53;
}

// The document to give to the empty part with the share [begin, end).
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
