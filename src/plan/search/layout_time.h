// How fast a layout can be at best, in microseconds of ours: what its stages compute, in a pipeline that waits for
// nothing but the first slice's way to a stage and the last one's way back, and no message or sum takes time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "plan/costs/layer_costs.h"
#include "plan/search/layout.h"

namespace teratron::plan {

class LayoutTimes {
 public:
  // Refers to both.
  LayoutTimes(const TrainConfig& config, const Cluster& cluster, std::int64_t vocab_size);

  // Seconds of an update. Token slices may still be kSlicersChoice: of any slices then.
  double least(const Layout& layout);

  // The lengths that the slicer chooses for the stages of this layout (src/slicing), whose token_slices do not matter:
  // for terapipe the paper's Algorithm 1, for seq1f1b balanced pairs. Boundaries at multiples of 1/32 of the sequence
  // (and of the ranks of sequence parallelism). One length: the sequence is best left whole.
  std::vector<std::int64_t> chosen_slices(const Layout& layout);

 private:
  // Milliseconds of a micro-batch's slices, of one layer or end of the model.
  struct Sums {
    double forward = 0, backward = 0;              // of all slices
    double least_forward = 0, least_backward = 0;  // of the quickest
  };
  struct MicroBatch {
    Sums layer, embedding, head;
  };
  using CostsKey = std::tuple<std::int64_t, bool, Recompute>;
  using MicroBatchKey = std::tuple<CostsKey, std::int64_t, std::string>;

  const ModelCosts& costs_of(const Layout& layout);
  const MicroBatch& micro_batch_of(const Layout& layout, std::int64_t sequences);
  MicroBatch any_slices(const Layout& layout, std::int64_t sequences);
  std::int64_t unit_of(const Layout& layout) const;

  const TrainConfig& config_;
  const Cluster& cluster_;
  const ModelConfig model_;
  std::map<CostsKey, std::unique_ptr<ModelCosts>> costs_;
  std::map<MicroBatchKey, MicroBatch> micro_batches_;
};

}  // namespace teratron::plan
