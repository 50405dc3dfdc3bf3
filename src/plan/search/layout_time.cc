#include "plan/search/layout_time.h"

#include <algorithm>
#include <numeric>

#include "nn/transformer_layer.h"
#include "pipeline/token_slices.h"
#include "plan/costs/step_time.h"
#include "slicing/least_sum.h"
#include "slicing/slicer.h"

namespace teratron::plan {
namespace {

using pipeline::PassTimes;

constexpr std::int64_t kGrid = 32;       // intervals of a sequence between which the slicer cuts
constexpr double kSlicerEpsilon = 1e-4;  // of a micro-batch's time

}  // namespace

LayoutTimes::LayoutTimes(const TrainConfig& config, const Cluster& cluster, std::int64_t vocab_size)
    : config_(config), cluster_(cluster), model_(config.model.model_for(vocab_size)) {}

std::int64_t LayoutTimes::unit_of(const Layout& layout) const { return layout.sequence_parallel ? layout.tensor : 1; }

const ModelCosts& LayoutTimes::costs_of(const Layout& layout) {
  std::unique_ptr<ModelCosts>& costs = costs_[{layout.tensor, layout.sequence_parallel, layout.recompute}];
  if (costs == nullptr) {
    costs = std::make_unique<ModelCosts>(model_,
                                         LayerSettings{.tensor = layout.tensor,
                                                       .sequence_parallel = layout.sequence_parallel,
                                                       .recompute = layout.recompute,
                                                       .dtype = config_.backend.compute_dtype()},
                                         cluster_);
  }
  return *costs;
}

const LayoutTimes::MicroBatch& LayoutTimes::micro_batch_of(const Layout& layout, std::int64_t sequences) {
  const MicroBatchKey key{{layout.tensor, layout.sequence_parallel, layout.recompute}, sequences, layout.token_slices};
  const auto known = micro_batches_.find(key);
  if (known != micro_batches_.end()) return known->second;
  if (layout.token_slices == kSlicersChoice) return micro_batches_[key] = any_slices(layout, sequences);
  const ModelCosts& costs = costs_of(layout);
  MicroBatch micro_batch;
  std::int64_t context = 0;
  for (const std::int64_t length : slice_lengths(layout, config_.model.seq_length)) {
    const Slice slice{.sequences = sequences, .tokens = length, .context = context};
    const auto add = [&](Sums& sums, const PassTimes& times) {
      const bool is_first = slice.context == 0;
      sums.forward += times.forward;
      sums.backward += times.backward;
      sums.least_forward = is_first ? times.forward : std::min(sums.least_forward, times.forward);
      sums.least_backward = is_first ? times.backward : std::min(sums.least_backward, times.backward);
    };
    add(micro_batch.layer, costs.layer(slice));
    add(micro_batch.embedding, costs.embedding(slice));
    add(micro_batch.head, costs.head(slice));
    context += length;
  }
  return micro_batches_[key] = micro_batch;
}

LayoutTimes::MicroBatch LayoutTimes::any_slices(const Layout& layout, std::int64_t sequences) {
  const ModelCosts& costs = costs_of(layout);
  const std::int64_t granularity = slicing::slice_grid(config_.model.seq_length, unit_of(layout), kGrid);
  const auto least = [&](PassTimes (ModelCosts::*part)(const Slice&) const) {
    const slicing::CostTable table(
        config_.model.seq_length, granularity, [&](std::int64_t length, std::int64_t context) {
          const PassTimes times = (costs.*part)({.sequences = sequences, .tokens = length, .context = context});
          return times.forward + times.backward;
        });
    return Sums{.forward = slicing::LeastSum(table).solve(slicing::kNever)};
  };
  return {
      .layer = least(&ModelCosts::layer), .embedding = least(&ModelCosts::embedding), .head = least(&ModelCosts::head)};
}

double LayoutTimes::least(const Layout& layout) {
  const std::int64_t share = share_of_batch(config_, layout.data), size = std::min(layout.micro_batch, share);
  const MicroBatch& micro_batch = micro_batch_of(layout, size);
  const auto micro_batches = static_cast<double>(share) / static_cast<double>(size);
  const std::vector<std::int64_t> cells = cell_layers(with_layout(config_, layout));
  const auto stages = static_cast<std::size_t>(layout.pipeline);
  const double per_layer = layer_parameters(model_, layout.tensor);
  const auto shares = static_cast<double>(layout.distributed_optimizer ? layout.data : 1);
  double most = 0, way = 0;  // there and back, of the quickest slice
  double update = 0;         // of the stage that takes longest: all begin when the norm of all gradients is known
  for (std::size_t stage = 0; stage < stages; ++stage) {
    double layers = 0;
    for (std::size_t cell = stage; cell < cells.size(); cell += stages) layers += static_cast<double>(cells[cell]);
    update = std::max(update, costs_of(layout).update_seconds(layers * per_layer / shares));
    const Sums& layer = micro_batch.layer;
    double work = layers * (layer.forward + layer.backward);
    if (stage == 0) work += micro_batch.embedding.forward + micro_batch.embedding.backward;
    if (stage + 1 == stages) work += micro_batch.head.forward + micro_batch.head.backward;
    most = std::max(most, way + micro_batches * work);
    way += static_cast<double>(cells[stage]) * (layer.least_forward + layer.least_backward);
    if (stage == 0) way += micro_batch.embedding.least_forward + micro_batch.embedding.least_backward;
  }
  return most / 1000 + update;
}

std::vector<std::int64_t> LayoutTimes::chosen_slices(const Layout& layout) {
  const ModelCosts& costs = costs_of(layout);
  const std::int64_t sequences = std::min(layout.micro_batch, share_of_batch(config_, layout.data));
  const std::vector<std::int64_t> cells = cell_layers(with_layout(config_, layout));
  const auto layers = static_cast<double>(std::ranges::max(cells));
  const std::int64_t granularity = slicing::slice_grid(config_.model.seq_length, unit_of(layout), kGrid);
  const auto table = [&](double PassTimes::*pass) {
    return slicing::CostTable(config_.model.seq_length, granularity, [&](std::int64_t length, std::int64_t context) {
      return layers * (costs.layer({.sequences = sequences, .tokens = length, .context = context}).*pass);
    });
  };
  const slicing::CostTable forward = table(&PassTimes::forward), backward = table(&PassTimes::backward);
  const slicing::SlicerOptions options{
      .stages = static_cast<int>(layout.pipeline),
      .micro_batches = static_cast<int>(micro_batches_of(config_, layout)),
      .epsilon = kSlicerEpsilon * (forward.of(0, forward.intervals()) + backward.of(0, backward.intervals()))};
  return layout.schedule == pipeline::ScheduleKind::kSeq1F1B
             ? slicing::best_pair_slicing(forward, backward, options).lengths
             : slicing::best_slicing(forward.plus(backward), options).lengths;
}

}  // namespace teratron::plan
