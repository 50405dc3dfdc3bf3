#include "plan/search/layout_time.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/round_up.h"
#include "plan/costs/rank_parameters.h"
#include "plan/costs/step_time.h"
#include "slicing/candidate_cuts.h"
#include "slicing/least_sum.h"
#include "slicing/slicer.h"

namespace teratron::plan {
namespace {

using pipeline::PassTimes;
using slicing::CostTable;
using CostsKey = std::tuple<std::int64_t, bool, Recompute, std::int64_t>;

constexpr std::int64_t kCoarse = 32, kFine = 256;  // intervals of a sequence between which the slicers cut
constexpr double kSlicerEpsilon = 1e-4;            // of a micro-batch's time

std::int64_t vocabulary_stages(const Layout& layout) { return layout.vocabulary_parallel ? layout.pipeline : 1; }

// The kind of recomputation of all layers; none where they differ.
Recompute uniform_kind(const Layout& layout) { return layout.recompute.uniform().value_or(Recompute::kNone); }

CostsKey key_of(const Layout& layout) {
  return {layout.tensor, layout.sequence_parallel, uniform_kind(layout), vocabulary_stages(layout)};
}

struct Ends {
  PassTimes embedding, head;
};

Ends ends_of(const ModelCosts& costs, const Layout& layout, const Slice& slice) {
  if (!layout.vocabulary_parallel) return {costs.embedding(slice), costs.head(slice)};
  const PassTimes joint = costs.joint_ends(slice);
  return {{.forward = joint.embedding, .backward = joint.embedding_backward}, {.backward = joint.head}};
}

}  // namespace

LayoutTimes::LayoutTimes(const TrainConfig& config, const Cluster& cluster, std::int64_t vocab_size, bool closely)
    : config_(config),
      cluster_(cluster),
      model_(config.model.model_for(vocab_size)),
      vocab_size_(vocab_size),
      closely_(closely) {}

std::int64_t LayoutTimes::granularity_of(const Layout& layout) const {
  return slicing::slice_grid(config_.model.seq_length, layout.sequence_parallel ? layout.tensor : 1,
                             closely_ ? kFine : kCoarse);
}

const ModelCosts& LayoutTimes::costs_of(const Layout& layout) {
  std::unique_ptr<ModelCosts>& costs = costs_[key_of(layout)];
  if (costs == nullptr) {
    costs = std::make_unique<ModelCosts>(model_,
                                         LayerSettings{.tensor = layout.tensor,
                                                       .groups = layout.devices() / layout.tensor,
                                                       .vocabulary_stages = vocabulary_stages(layout),
                                                       .sequence_parallel = layout.sequence_parallel,
                                                       .recompute = uniform_kind(layout),
                                                       .dtype = config_.backend.compute_dtype()},
                                         cluster_);
  }
  return *costs;
}

const LayoutTimes::MicroBatch& LayoutTimes::micro_batch_of(const Layout& layout, const pipeline::MicroBatchCut& cut) {
  const MicroBatchKey key{key_of(layout), cut.sequences, cut.slice_tokens};
  const auto known = micro_batches_.find(key);
  if (known != micro_batches_.end()) return known->second;
  const ModelCosts& costs = costs_of(layout);
  MicroBatch micro_batch;
  Slice slice{.sequences = cut.sequences};
  const auto add = [&](Sums& sums, const PassTimes& times) {
    const bool is_first = slice.context == 0;
    sums.forward += times.forward;
    sums.backward += times.backward;
    sums.least_forward = is_first ? times.forward : std::min(sums.least_forward, times.forward);
    sums.least_backward = is_first ? times.backward_input : std::min(sums.least_backward, times.backward_input);
  };
  for (const std::int64_t length : cut.slice_tokens) {
    slice.tokens = length;
    add(micro_batch.layer, costs.layer(slice));
    const Ends ends = ends_of(costs, layout, slice);
    add(micro_batch.embedding, ends.embedding);
    add(micro_batch.head, ends.head);
    slice.context += length;
  }
  return micro_batches_[key] = micro_batch;
}

// Forward and backward of every slice in a layer. The simulation adds messages and the ends of the model.
CostTable LayoutTimes::layer_table(const Layout& layout, std::int64_t sequences, std::int64_t granularity) {
  const ModelCosts& costs = costs_of(layout);
  return {config_.model.seq_length, granularity, [&](std::int64_t length, std::int64_t context) {
            const PassTimes times = costs.layer({.sequences = sequences, .tokens = length, .context = context});
            return times.forward + times.backward;
          }};
}

const LayoutTimes::MicroBatch& LayoutTimes::any_slices(const Layout& layout, std::int64_t sequences) {
  const MicroBatchKey key{key_of(layout), sequences, {}};
  const auto known = micro_batches_.find(key);
  if (known != micro_batches_.end()) return known->second;
  const ModelCosts& costs = costs_of(layout);
  const auto least = [&](const auto& times_of) {
    const CostTable table(config_.model.seq_length, granularity_of(layout), [&](auto length, auto context) {
      const PassTimes times = times_of(Slice{.sequences = sequences, .tokens = length, .context = context});
      return times.forward + times.backward;
    });
    return Sums{.forward = slicing::LeastSum(table).solve(slicing::kNever)};
  };
  return micro_batches_[key] = {
             .layer = least([&](const Slice& slice) { return costs.layer(slice); }),
             .embedding = least([&](const Slice& slice) { return ends_of(costs, layout, slice).embedding; }),
             .head = least([&](const Slice& slice) { return ends_of(costs, layout, slice).head; })};
}

void LayoutTimes::Sums::add(const Sums& other, double count) {
  const bool is_first = forward + backward == 0;
  forward += count * other.forward;
  backward += count * other.backward;
  least_forward = is_first ? other.least_forward : std::min(least_forward, other.least_forward);
  least_backward = is_first ? other.least_backward : std::min(least_backward, other.least_backward);
}

void LayoutTimes::MicroBatch::add(const MicroBatch& other, double count) {
  layer.add(other.layer, count);
  embedding.add(other.embedding, count);
  head.add(other.head, count);
}

LayoutTimes::MicroBatch LayoutTimes::batch_of(const Layout& layout) {
  MicroBatch batch;
  if (!layout.slicing.is_open()) {
    for (const auto& [cut, count] : cuts_of(config_, layout)) batch.add(micro_batch_of(layout, cut), count);
    return batch;
  }
  const std::int64_t share = share_of_batch(config_, layout.data), most = std::min(layout.micro_batch, share);
  for (std::int64_t size = layout.slicing.open == Slicing::Open::kJoint ? 1 : most; size <= most; ++size) {
    MicroBatch alike;
    alike.add(any_slices(layout, size), static_cast<double>(share) / static_cast<double>(size));
    if (batch.layer.forward == 0) batch = alike;
    for (Sums MicroBatch::*part : {&MicroBatch::layer, &MicroBatch::embedding, &MicroBatch::head}) {
      (batch.*part).forward = std::min((batch.*part).forward, (alike.*part).forward);
    }
  }
  return batch;
}

double LayoutTimes::update_seconds(const Layout& layout, double layers) {
  const auto shares = static_cast<double>(layout.distributed_optimizer ? layout.data : 1);
  double& of_layer = layer_parameters_[layout.tensor];
  if (of_layer == 0) of_layer = rank_parameters(model_, layout.tensor, 1, /*trained=*/true).layer;
  return costs_of(layout).update_seconds(layers * of_layer / shares);
}

// The stages' mean work, and the least that the one with the head has; none waits.
double LayoutTimes::least_of_any_dealing(const Layout& layout, const MicroBatch& batch) {
  const auto stages = static_cast<double>(layout.pipeline), layers = static_cast<double>(model_.num_layers);
  const double of_layer = batch.layer.forward + batch.layer.backward, head = batch.head.forward + batch.head.backward,
               embedding = batch.embedding.forward + batch.embedding.backward;
  const double ends = layout.vocabulary_parallel ? head + embedding : (head + embedding) / stages;
  const double with_head = static_cast<double>(layout.virtual_stages) * of_layer + head;
  return std::max(layers / stages * of_layer + ends, with_head) / 1000 +
         update_seconds(layout, std::ceil(layers / stages));
}

std::vector<double> LayoutTimes::again(const Layout& layout, int /*stage*/, Recompute kind) {
  const ModelCosts& costs = costs_of(layout);
  std::vector<double> seconds;
  for (const auto& [cut, count] : cuts_of(config_, layout)) {
    Slice slice{.sequences = cut.sequences};
    if (cut.slice_tokens.size() > seconds.size()) seconds.resize(cut.slice_tokens.size());
    for (std::size_t number = 0; number < cut.slice_tokens.size(); ++number) {
      slice.tokens = cut.slice_tokens[number];
      seconds[number] +=
          count * (costs.layer(slice, kind).backward - costs.layer(slice, Recompute::kNone).backward) / 1000;
      slice.context += slice.tokens;
    }
  }
  return seconds;
}

// Milliseconds of a stage beside those of layers all alike.
double LayoutTimes::made_again(const Layout& layout, const std::vector<std::int64_t>& cells, std::size_t stage) {
  if (layout.recompute.uniform() || layout.slicing.is_open()) return 0;
  const StageRecompute& way = layout.recompute.of(static_cast<int>(stage));
  return 1000 * again_of(way, cells, again(layout, static_cast<int>(stage), way.kind));
}

double LayoutTimes::least(const Layout& layout) {
  const MicroBatch batch = batch_of(layout);
  if (layout.deals_layers) return least_of_any_dealing(layout, batch);
  const std::vector<std::vector<std::int64_t>> cells = stage_cells(config_, layout);
  const std::size_t stages = cells.size();
  // A stage may make deferred weight gradients while the last slice goes back.
  const bool may_defer = closely_ || layout.defer_weight_gradients;
  const auto way_back = [&](const Sums& sums) { return may_defer ? 0 : sums.least_backward; };
  double most = 0, round_trip = 0;  // round_trip: of the quickest slice, to this stage and back
  double update = 0;                // of the slowest stage: all begin when the norm of all gradients is known
  const pipeline::CellMap map{static_cast<int>(stages), pipeline::traits_of(layout.schedule).placement};
  const auto with_head = static_cast<std::size_t>(map.stage_of(static_cast<int>(stages * cells.front().size()) - 1));
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const auto layers = static_cast<double>(std::accumulate(cells[stage].begin(), cells[stage].end(), std::int64_t{0}));
    update = std::max(update, update_seconds(layout, layers));
    const bool shares_ends = layout.vocabulary_parallel, has_head = stage == with_head;
    const double embedding = batch.embedding.forward + batch.embedding.backward;
    double work = layers * (batch.layer.forward + batch.layer.backward) + made_again(layout, cells[stage], stage);
    if (stage == 0 && !shares_ends) work += embedding;
    if (has_head || shares_ends) work += batch.head.forward + batch.head.backward;
    // Joint look-ups need not wait for the first slice.
    most = std::max({most, round_trip + work, shares_ends ? work + embedding : 0});
    round_trip += static_cast<double>(cells[stage].front()) * (batch.layer.least_forward + way_back(batch.layer));
    if (stage == 0 && !shares_ends) round_trip += batch.embedding.least_forward + way_back(batch.embedding);
  }
  return most / 1000 + update;
}

std::vector<Layout> LayoutTimes::chosen(const Layout& layout) {
  return layout.slicing.open == Slicing::Open::kJoint ? chosen_jointly(layout) : chosen_alike(layout);
}

std::vector<Layout> LayoutTimes::chosen_alike(const Layout& layout) {
  const std::int64_t sequences = std::min(layout.micro_batch, share_of_batch(config_, layout.data));
  const std::pair key{key_of(layout), sequences};
  auto table = tables_.find(key);
  if (table == tables_.end()) {
    table = tables_.emplace(key, layer_table(layout, sequences, granularity_of(layout))).first;
  }
  // With several cells a stage, the pipeline fills and empties in as small a part of the time.
  const std::int64_t cells = layout.virtual_stages, further = (layout.pipeline - 1 + cells - 1) / cells;
  const slicing::CutLimits limits{.fewest_tokens = kFewestSliceTokens,
                                  .most_slices = static_cast<std::size_t>(kMostSlices),
                                  .further = static_cast<int>(further),
                                  .micro_batches = static_cast<int>(micro_batches_of(config_, layout))};
  if (closely_) return cut_into(layout, slicing::candidate_cuts(table->second, limits));
  return cut_into(layout, {slicing::algorithm_1_cut(table->second, limits, limits.further)});
}

StepTime LayoutTimes::step(const Layout& layout) {
  return predict_step(with_layout(config_, layout), cluster_, vocab_size_);
}

std::vector<Layout> LayoutTimes::chosen_jointly(const Layout& layout) {
  const std::int64_t share = share_of_batch(config_, layout.data);
  const std::int64_t unit = layout.sequence_parallel ? layout.tensor : 1;
  const std::int64_t granularity =
      round_up(slicing::slice_grid(config_.model.seq_length, unit, kCoarse), granularity_of(layout));
  std::vector<CostTable> tables;
  for (std::int64_t size = 1; size <= std::min(layout.micro_batch, share); ++size) {
    tables.push_back(layer_table(layout, size, granularity));
  }
  const double epsilon = kSlicerEpsilon * tables.front().of(0, tables.front().intervals());
  std::vector<Layout> all = chosen_alike(layout);
  Layout even = layout;
  for (std::int64_t count = 1; count <= kMostSlices && config_.model.seq_length / count >= kFewestSliceTokens;
       count *= 2) {
    even.slicing = {count == 1 ? "" : fmt::format("uniform:{}", count)};
    all.push_back(even);
  }
  // Fewer further stages give longer slices; the simulation picks the best.
  for (const std::int64_t divisor : {4, 2, 1}) {
    const auto further = static_cast<int>((layout.pipeline - 1 + divisor - 1) / divisor);
    const slicing::JointSlicing best = slicing::best_joint_slicing(tables, {.stages = 1 + further, .epsilon = epsilon},
                                                                   static_cast<std::size_t>(share));
    std::vector<pipeline::MicroBatchCut> cuts;
    for (const slicing::JointSlicing::Part& part : best.parts) cuts.push_back({part.sequences, part.lengths});
    Layout cut = layout;
    cut.micro_batch = cuts.front().sequences;
    cut.slicing = {pipeline::text_of(cuts)};
    if (std::ranges::find(all, cut) == all.end()) all.push_back(std::move(cut));
  }
  return all;
}

}  // namespace teratron::plan
