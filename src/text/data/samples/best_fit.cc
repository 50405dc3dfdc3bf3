#include "data/samples/best_fit.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"

namespace teratron {
namespace {

std::vector<std::int64_t> largest_first(std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
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

}  // namespace teratron
