// How fast a layout can be at best, in microseconds of ours: what its stages compute, in a pipeline that waits for
// nothing but the first slice's way to a stage and the last one's way back, and no message or sum takes time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "plan/costs/layer_costs.h"
#include "plan/search/layout.h"
#include "slicing/cost/cost_table.h"

namespace teratron::plan {

class LayoutTimes {
 public:
  // Refers to both. All layouts have the same number of devices.
  LayoutTimes(const TrainConfig& config, const Cluster& cluster, std::int64_t vocab_size);

  // Seconds of an update. Token slices may still be kSlicersChoice: of any slices then.
  double least(const Layout& layout);

  // The layouts that the slicer makes of one whose slices are to be chosen (src/engine/slicing): for terapipe the paper's
  // Algorithm 1, for seq1f1b balanced pairs; jointly chosen ones by the paper's section 3.4, beside which stand those
  // of micro-batches that are alike, also in even slices. Boundaries at multiples of 1/32 of the sequence (and of the
  // ranks of sequence parallelism). None: sequences are best left whole.
  std::vector<Layout> chosen(const Layout& layout);

 private:
  // Milliseconds of micro-batches' slices, of one layer or end of the model.
  struct Sums {
    double forward = 0, backward = 0;              // of all slices
    double least_forward = 0, least_backward = 0;  // of the quickest
    void add(const Sums& other, double count);
  };
  struct MicroBatch {
    Sums layer, embedding, head;
    void add(const MicroBatch& other, double count);
  };
  using CostsKey = std::tuple<std::int64_t, bool, Recompute>;
  using MicroBatchKey = std::tuple<CostsKey, std::int64_t, std::vector<std::int64_t>>;  // no lengths: any slices

  const ModelCosts& costs_of(const Layout& layout);
  const MicroBatch& micro_batch_of(const Layout& layout, const pipeline::MicroBatchCut& cut);
  const MicroBatch& any_slices(const Layout& layout, std::int64_t sequences);
  MicroBatch batch_of(const Layout& layout);  // all micro-batches of an update together
  using SliceTimes = std::function<double(const ModelCosts& costs, const Slice& slice)>;  // milliseconds
  slicing::CostTable cost_table(const Layout& layout, std::int64_t sequences, const SliceTimes& times);
  double most_layers(const Layout& layout) const;  // of a cell
  std::vector<Layout> chosen_alike(const Layout& layout);
  std::vector<Layout> chosen_jointly(const Layout& layout);
  std::int64_t unit_of(const Layout& layout) const;

  const TrainConfig& config_;
  const Cluster& cluster_;
  const ModelConfig model_;
  std::map<CostsKey, std::unique_ptr<ModelCosts>> costs_;
  std::map<MicroBatchKey, MicroBatch> micro_batches_;
};

}  // namespace teratron::plan
