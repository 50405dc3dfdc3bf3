#include "corpus/overlap/bloom_filter.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace teratron {
namespace {

// Calls probe(word, bit) for each bit of an element until one returns false. Bits are steps of one hash by another.
template <class Probe>
bool for_each_place(std::uint64_t element, std::size_t words, int probes, const Probe& probe) {
  const std::uint64_t step = (element * 0x9E3779B97F4A7C15ULL) | 1;
  std::uint64_t slot = element;
  for (int i = 0; i < probes; ++i, slot += step) {
    const auto bit = static_cast<std::uint64_t>((static_cast<unsigned __int128>(slot) * (words * 64)) >> 64);
    if (!probe(bit / 64, std::uint64_t{1} << (bit % 64))) return false;
  }
  return true;
}

}  // namespace

BloomFilter::BloomFilter(double false_positives, std::int64_t first_capacity)
    : next_share_(false_positives / 2), next_capacity_(first_capacity) {
  check(false_positives > 0 && false_positives < 1 && first_capacity > 0, "BloomFilter");
  add_layer();
}

void BloomFilter::add_layer() {
  const double bits_per_element = -std::log(next_share_) / (std::numbers::ln2 * std::numbers::ln2);
  const double bits = std::ceil(bits_per_element * static_cast<double>(next_capacity_));
  Layer layer{.capacity = next_capacity_, .probes = static_cast<int>(std::ceil(-std::log2(next_share_)))};
  layer.words.resize(static_cast<std::size_t>(bits / 64) + 1);
  layers_.push_back(std::move(layer));
  next_share_ /= 2;
  next_capacity_ *= 2;
}

bool BloomFilter::has(const Layer& layer, std::uint64_t element) {
  return for_each_place(element, layer.words.size(), layer.probes,
                        [&](std::uint64_t word, std::uint64_t bit) { return (layer.words[word] & bit) != 0; });
}

bool BloomFilter::may_have(std::uint64_t element) const {
  return std::ranges::any_of(layers_, [&](const Layer& layer) { return has(layer, element); });
}

void BloomFilter::add(std::uint64_t element) {
  if (may_have(element)) return;
  if (layers_.back().elements == layers_.back().capacity) add_layer();
  Layer& layer = layers_.back();
  for_each_place(element, layer.words.size(), layer.probes, [&](std::uint64_t word, std::uint64_t bit) {
    layer.words[word] |= bit;
    return true;
  });
  ++layer.elements;
  ++elements_;
}

std::int64_t BloomFilter::bytes() const {
  std::int64_t bytes = 0;
  for (const Layer& layer : layers_) bytes += static_cast<std::int64_t>(layer.words.size() * sizeof(std::uint64_t));
  return bytes;
}

}  // namespace teratron
