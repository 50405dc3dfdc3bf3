#include "data/samples/packing.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"

namespace teratron {
namespace {

constexpr std::uint32_t kPackedStream = 48;  // of RandomPurpose::kShuffle, beside those of epoch_order.cc

std::vector<std::int64_t> largest_first(std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::int64_t item) { return sizes[static_cast<std::size_t>(item)]; });
  return order;
}

// Numbers bins in the order in which the items name them first.
void number_by_first_item(std::vector<std::int64_t>& bins, std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count), -1);
  std::int64_t next = 0;
  for (std::int64_t& bin : bins) {
    std::int64_t& number = numbers[static_cast<std::size_t>(bin)];
    if (number < 0) number = next++;
    bin = number;
  }
}

}  // namespace

std::vector<std::int64_t> best_fit_decreasing(std::span<const std::int64_t> sizes, std::int64_t capacity) {
  std::vector<std::int64_t> bins(sizes.size());
  std::map<std::int64_t, std::vector<std::int64_t>> by_room;  // bins that are not full
  std::int64_t count = 0;
  for (const std::int64_t item : largest_first(sizes)) {
    const std::int64_t size = sizes[static_cast<std::size_t>(item)];
    check(size >= 1 && size <= capacity, "best fit: an item that fits into a bin");
    std::int64_t room = capacity, bin = count;
    if (const auto best = by_room.lower_bound(size); best != by_room.end()) {
      room = best->first;
      bin = best->second.back();
      best->second.pop_back();
      if (best->second.empty()) by_room.erase(best);
    } else {
      ++count;
    }
    bins[static_cast<std::size_t>(item)] = bin;
    if (room > size) by_room[room - size].push_back(bin);
  }
  number_by_first_item(bins, count);
  return bins;
}

SamplePacking::SamplePacking(std::span<const std::int64_t> sizes, std::int64_t seq_length, SampleOrder order,
                             std::uint64_t seed)
    : order_(order, {.seed = seed, .purpose = RandomPurpose::kShuffle, .stream = kPackedStream}) {
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
  const auto number = static_cast<std::size_t>(order_.item(position, samples()));
  return std::span(items_).subspan(static_cast<std::size_t>(begins_[number]),
                                   static_cast<std::size_t>(begins_[number + 1] - begins_[number]));
}

}  // namespace teratron
