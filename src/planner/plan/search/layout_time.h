// A lower bound of a layout's time, computed in microseconds: the work of its stages, in a pipeline that waits only for
// the first slice to reach a stage and for the last one to return. Messages and sums take no time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/costs/layer_costs.h"
#include "plan/search/layout_costs.h"
#include "slicing/cost/cost_table.h"

namespace teratron::plan {

class LayoutTimes : public LayoutCosts {
 public:
  // Refers to both. All layouts have the same number of devices. `closely`: there are few of them, so that many cuts on
  // a fine grid are chosen from.
  LayoutTimes(const TrainConfig& config, const Cluster& cluster, std::int64_t vocab_size, bool closely = false);

  // Seconds of an update, with weight gradients deferred or not. Where slices are open: of any.
  double least(const Layout& layout) override;

  // The layouts that the slicers make of one whose slices are to be chosen: Algorithm 1's (slicing/slicer.h), closely
  // also even ones and those of equal work (slicing/candidate_cuts.h). Jointly with micro-batches: those of the paper's
  // section 3.4, and beside them micro-batches of one size, also in even slices. Boundaries are multiples of 1/32 or
  // 1/256 of the sequence (and of the ranks of sequence parallelism).
  std::vector<Layout> chosen(const Layout& layout) override;

  StepTime step(const Layout& layout) override;
  std::vector<double> again(const Layout& layout, int stage, Recompute kind) override;

 private:
  // Milliseconds of the slices of micro-batches in one layer or end of the model; of shared ends, a stage's part.
  struct Sums {
    double forward = 0, backward = 0;              // all slices
    double least_forward = 0, least_backward = 0;  // the quickest slice, back without weight gradients
    void add(const Sums& other, double count);
  };
  struct MicroBatch {
    Sums layer, embedding, head;
    void add(const MicroBatch& other, double count);
  };
  using CostsKey = std::tuple<std::int64_t, bool, Recompute, std::int64_t>;
  using MicroBatchKey = std::tuple<CostsKey, std::int64_t, std::vector<std::int64_t>>;  // no lengths: any slices

  const ModelCosts& costs_of(const Layout& layout);
  const MicroBatch& micro_batch_of(const Layout& layout, const pipeline::MicroBatchCut& cut);
  const MicroBatch& any_slices(const Layout& layout, std::int64_t sequences);
  MicroBatch batch_of(const Layout& layout);  // all micro-batches of an update together
  double least_of_any_dealing(const Layout& layout, const MicroBatch& batch);
  double made_again(const Layout& layout, const std::vector<std::int64_t>& cells, std::size_t stage);
  double update_seconds(const Layout& layout, double layers);  // of a rank that has so many
  slicing::CostTable layer_table(const Layout& layout, std::int64_t sequences, std::int64_t granularity);
  std::vector<Layout> chosen_alike(const Layout& layout);
  std::vector<Layout> chosen_jointly(const Layout& layout);
  std::int64_t granularity_of(const Layout& layout) const;  // of slices, in tokens

  const TrainConfig& config_;
  const Cluster& cluster_;
  const ModelConfig model_;
  const std::int64_t vocab_size_;
  const bool closely_;
  std::map<CostsKey, std::unique_ptr<ModelCosts>> costs_;
  std::map<std::int64_t, double> layer_parameters_;  // of a rank, by the ranks of tensor parallelism
  std::map<MicroBatchKey, MicroBatch> micro_batches_;
  std::map<std::pair<CostsKey, std::int64_t>, slicing::CostTable> tables_;
};

}  // namespace teratron::plan
