#include "data/samples/packing.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "data/samples/best_fit.h"

namespace teratron {
namespace {

constexpr std::uint32_t kPackedStream = 48;  // of RandomPurpose::kShuffle, beside those of epoch_order.cc

}  // namespace

SamplePacking::SamplePacking(std::span<const std::int64_t> sizes, std::int64_t seq_length, SampleOrder order,
                             std::uint64_t seed)
    : order_(order), seed_(seed) {
  const std::vector<std::int64_t> bins = best_fit_decreasing(sizes, seq_length);
  if (bins.empty()) return;
  begins_.assign(static_cast<std::size_t>(*std::ranges::max_element(bins)) + 2, 0);
  for (const std::int64_t bin : bins) ++begins_[static_cast<std::size_t>(bin) + 1];
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  std::vector<std::int64_t> next = begins_;
  items_.resize(bins.size());
  for (std::size_t i = 0; i < bins.size(); ++i) {
    items_[static_cast<std::size_t>(next[static_cast<std::size_t>(bins[i])]++)] = static_cast<std::int64_t>(i);
  }
  const auto all = static_cast<double>(samples() * seq_length);
  padding_ = 1 - static_cast<double>(std::reduce(sizes.begin(), sizes.end())) / all;
}

std::span<const std::int64_t> SamplePacking::items(std::int64_t position) const {
  check(position >= 0, "SamplePacking: position");
  const std::int64_t epoch = position / samples(), index = position % samples();
  check(epoch <= 0xffffffff, "SamplePacking: epoch");
  std::int64_t sample = index;
  if (order_ == SampleOrder::kShuffled) {
    const auto order = orders_.get(epoch, [&] {
      return RandomPermutation(samples(), {.seed = seed_,
                                           .purpose = RandomPurpose::kShuffle,
                                           .stream = kPackedStream,
                                           .step = static_cast<std::uint32_t>(epoch)});
    });
    sample = (*order)(index);
  }
  const auto number = static_cast<std::size_t>(sample);
  return std::span(items_).subspan(static_cast<std::size_t>(begins_[number]),
                                   static_cast<std::size_t>(begins_[number + 1] - begins_[number]));
}

}  // namespace teratron
