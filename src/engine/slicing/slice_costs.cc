#include "slicing/slice_costs.h"

#include <algorithm>

#include "base/error.h"

namespace teratron::slicing {

CostTable slowest_stage(const SliceCosts& costs, std::int64_t sequences, std::int64_t tokens,
                        std::int64_t granularity) {
  return {tokens, granularity, [&](std::int64_t length, std::int64_t context) {
            const TokenSlice slice{.sequences = sequences, .length = length, .context = context};
            double most = 0;
            for (int stage = 0; stage < costs.stages(); ++stage) {
              const pipeline::PassTimes times = costs.passes(stage, slice);
              most = std::max(most, times.forward + times.backward);
            }
            return most + costs.message(slice);
          }};
}

pipeline::Costs schedule_costs(const SliceCosts& costs, const pipeline::Schedule& schedule,
                               std::span<const pipeline::MicroBatchCut> cuts) {
  check_equal(costs.stages(), schedule.stages, "stages of known costs");
  pipeline::Costs all;
  all.passes.resize(static_cast<std::size_t>(schedule.cells()));
  for (std::size_t m = 0; m < cuts.size(); ++m) {
    const pipeline::MicroBatchCut& cut = cuts[m];
    check_equal(std::ssize(cut.slice_tokens), schedule.slices_of(static_cast<int>(m)), "slices of a known length");
    if (cuts.size() > 1) all.first_columns.push_back(all.transfers.size());
    TokenSlice slice{.sequences = cut.sequences};
    for (const std::int64_t length : cut.slice_tokens) {
      slice.length = length;
      for (int cell = 0; cell < schedule.cells(); ++cell) {
        all.passes[static_cast<std::size_t>(cell)].push_back(costs.cell_passes(schedule, cell, slice));
      }
      all.transfers.push_back(costs.message(slice));
      slice.context += length;
    }
  }
  return all;
}

}  // namespace teratron::slicing
