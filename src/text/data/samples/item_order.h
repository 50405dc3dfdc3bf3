// The items of a run, each once an epoch: as they stand, or in an order that is drawn for each epoch.
#pragma once

#include "base/error.h"
#include "base/permutation.h"
#include "data/samples.h"
#include "data/samples/epoch_cache.h"

namespace teratron {

// Safe to use from many threads.
class ItemOrder {
 public:
  // `random`: of the shuffles; its step is the epoch.
  ItemOrder(SampleOrder order, RandomStream random) : order_(order), random_(random) {}

  // The item, of items 0 to items - 1, at a place of the run. Each epoch has every item once; epochs never end.
  std::int64_t item(std::int64_t place, std::int64_t items) const {
    const std::int64_t epoch = place / items, index = place % items;
    check(place >= 0 && epoch <= 0xffffffff, "ItemOrder: the place");
    if (order_ == SampleOrder::kSequential) return index;
    return (*orders_.get(epoch, [&] {
      RandomStream random = random_;
      random.step = static_cast<std::uint32_t>(epoch);
      return RandomPermutation(items, random);
    }))(index);
  }

 private:
  SampleOrder order_;
  RandomStream random_;
  mutable EpochCache<RandomPermutation> orders_;
};

}  // namespace teratron
