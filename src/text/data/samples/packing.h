// Items into few samples of one size by best fit, and the order of the samples in each epoch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/samples.h"
#include "data/samples/item_order.h"

namespace teratron {

// Bin of each item. Items come in order of size, the largest first and equal ones as they stand; each goes into the bin
// with the least room that holds it, of several such bins into the one that got that little room last, or into a new
// one. Bins are numbered by the first of their items. Sizes lie between 1 and `capacity`. At most 11/9 of the fewest
// bins possible, and one more (Johnson, 1973). Time: O(items log capacity).
std::vector<std::int64_t> best_fit_decreasing(std::span<const std::int64_t> sizes, std::int64_t capacity);

// Items of given sizes in samples of one size, by best_fit_decreasing(), the same in all epochs. Each epoch has the
// samples in an order drawn by (seed, epoch); sequential, in the order of their first items. Memory: 8 bytes an item
// and 8 a sample. Safe to use from many threads.
class SamplePacking {
 public:
  // `sizes`: between 1 and seq_length.
  SamplePacking(std::span<const std::int64_t> sizes, std::int64_t seq_length, SampleOrder order, std::uint64_t seed);

  std::int64_t samples() const { return std::ssize(begins_) - 1; }  // an epoch
  double padding() const { return padding_; }                       // share of an epoch's tokens that no item has
  // Items of the sample at a position of the run, in their order.
  std::span<const std::int64_t> items(std::int64_t position) const;

 private:
  ItemOrder order_;
  double padding_ = 0;
  std::vector<std::int64_t> items_;         // sample by sample
  std::vector<std::int64_t> begins_ = {0};  // of each sample in items_; then their end
};

}  // namespace teratron
