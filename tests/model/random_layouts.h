// Random shapes of models with random layouts of their training, by seed.
#pragma once

#include <algorithm>
#include <array>
#include <random>

#include "model/train_in_layout.h"

namespace teratron::testing {

// Adapters of any rank beside some of the layers, or all.
inline void add_adapters(Study& study, double dropout) {
  std::mt19937 random(study.seed);
  AdapterConfig& adapters = study.config.adapters;
  adapters = {.rank = 1 + static_cast<std::int64_t>(random() % 4),
              .alpha = 3,
              .dropout = dropout,
              .rank_stabilized = random() % 2 == 0};
  unsigned all = 0;
  for (const AdapterTarget& target : study.config.family().adapter_targets) all |= target.targets;
  do {
    adapters.targets = all & static_cast<unsigned>(random());
  } while (adapters.targets == 0);
  if (random() % 4 == 0) adapters.targets = all;
}

// Tensor and data parallelism of one stage.
class RandomStudy {
 public:
  explicit RandomStudy(std::uint32_t seed) : random_(seed) {
    tensor_ = one_of({1, 2, 3, 4, 8});
    data_ = one_of({1, 2, 3, 4});
    share_ = one_of({1, 2, 3});
    study.config.num_layers = one_of({1, 2, 3});
    study.config.num_attention_heads = tensor_ * one_of({1, 2});
    study.config.hidden_size = study.config.num_attention_heads * one_of({1, 2, 5});
    study.config.vocab_size = one_of({1, 2, 7, 19, 50});  // often fewer than there are ranks: some hold padding alone
    study.config.make_vocab_size_divisible_by = one_of({1, 4, 8});
    study.config.max_position_embeddings = one_of({16, 17});
    study.config.hidden_dropout = study.config.attention_dropout = 0.1;
    study.config.init_method_std = 0.3;
    study.batch = data_ * share_ + one_of({0, 0, 1, 2});  // often not a multiple of the ranks
    sequence_parallel_ = one_of({0, 1}) == 1;
    study.tokens = sequence_parallel_ ? tensor_ * one_of({1, 2}) : one_of({1, 2, 5, 6});
    study.logits_chunk = one_of({1, 3, 100});
    study.seed = seed;
    study.bf16_moments = seed % 3 == 1;
  }
  Layout layout() {
    Layout layout{.mesh = {.tensor = tensor_, .data = data_},
                  .micro_batch = one_of({1, static_cast<int>(share_)}),
                  .sequence_parallel = sequence_parallel_,
                  .shard_optimizer = one_of({0, 1}) == 1,
                  .recompute = static_cast<Recompute>(one_of({0, 1, 2}))};
    if (layout.recompute == Recompute::kNone) layout.kept_layers = study.seed % 4;
    return layout;
  }
  Study study;

 private:
  int one_of(std::initializer_list<int> values) { return *(values.begin() + random_() % values.size()); }
  std::mt19937 random_;
  int tensor_, data_;
  bool sequence_parallel_;
  std::int64_t share_;
};

// Pipelines of every schedule, with what goes together with them.
class RandomPipeline {
 public:
  // may_slice: sequences may be cut into slices of tokens.
  explicit RandomPipeline(std::uint32_t seed, bool may_slice = true) : random_(seed) {
    layout.mesh = {.tensor = one_of({1, 1, 2}), .pipeline = one_of({1, 2, 2, 3, 4}), .data = one_of({1, 1, 2})};
    layout.schedule = pipeline::kScheduleKinds[random_() % pipeline::kScheduleKinds.size()];
    choose_cells();
    layout.micro_batch = one_of({1, 1, 2, 3});
    layout.shard_optimizer = one_of({0, 1}) == 1;
    layout.recompute = static_cast<Recompute>(one_of({0, 1, 2}));
    layout.defer_weight_gradients = one_of({0, 1}) == 1;
    // Rows of the residual stream are shared out over the tensor-parallel ranks: of one sequence at a time.
    layout.sequence_parallel = layout.mesh.tensor > 1 && layout.micro_batch == 1 && one_of({0, 1}) == 1;
    choose_slices(may_slice);
    choose_layers();
    study.config.num_attention_heads = layout.mesh.tensor * one_of({1, 2});
    study.config.hidden_size = study.config.num_attention_heads * one_of({2, 5});
    // Not 2: a norm makes -1 and 1 of two values, but for its epsilon, and where they nearly meet it multiplies their
    // difference by up to 300. In a pipeline of nine such layers the gradient's norm moved 1e5 times as far as a step.
    study.config.hidden_size = std::max<std::int64_t>(study.config.hidden_size, 3);
    study.config.vocab_size = one_of({7, 19, 50});
    study.config.make_vocab_size_divisible_by = one_of({1, 4, 8});
    study.config.max_position_embeddings = 32;
    study.config.hidden_dropout = study.config.attention_dropout = 0.1;
    study.config.init_method_std = 0.3;
    study.batch = layout.mesh.data * layout.micro_batch * one_of({1, 2, 4}) + one_of({0, 0, 1});
    study.logits_chunk = one_of({1, 3, 100});
    study.seed = seed;
    study.bf16_moments = seed % 3 == 1;
    if (seed % 2 == 1) layout.recompute = random_recomputation(seed);
    if (layout.recompute.uniform().value_or(Recompute::kNone) == Recompute::kNone) layout.kept_layers = seed % 4;
  }
  // A way of each stage, of some of its layers and slices.
  Recomputation random_recomputation(std::uint32_t seed) const {
    std::mt19937 random(seed);
    std::vector<StageRecompute> stages(static_cast<std::size_t>(layout.mesh.pipeline));
    for (StageRecompute& stage : stages) {
      stage.kind = static_cast<Recompute>(random() % 3);
      if (stage.kind == Recompute::kNone) continue;
      stage.layers = static_cast<std::int64_t>(random() % 3);
      if (layout.slices.size() > 1) stage.slices = static_cast<std::int64_t>(random() % layout.slices.size());
    }
    return Recomputation(std::move(stages));
  }
  // Micro-batches of random sizes, each with slices of its own, of one sequence where its rows are shared out.
  void cut_jointly() {
    using Kind = pipeline::ScheduleKind;
    constexpr std::array kSliced = {Kind::kTeraPipe, Kind::kSeq1F1B, Kind::kSeq1F1BInterleaved, Kind::kVHalf};
    layout.schedule = kSliced[random_() % kSliced.size()];
    choose_cells();
    layout.cell_layers.clear();
    choose_layers();
    layout.slices.clear();
    const std::int64_t unit = layout.sequence_parallel ? layout.mesh.tensor : 1;
    study.tokens = unit * one_of({3, 5, 8});
    study.batch = layout.mesh.data * one_of({1, 3, 5}) + one_of({0, 0, 1});
    const std::int64_t share = (study.batch + layout.mesh.data - 1) / layout.mesh.data;
    for (std::int64_t left = share; left > 0; left -= layout.cuts.back().sequences) {
      const std::int64_t most = layout.sequence_parallel ? 1 : layout.cuts.empty() ? 3 : layout.cuts.front().sequences;
      pipeline::MicroBatchCut cut{.sequences = std::min<std::int64_t>({left, most, one_of({1, 2, 3})})};
      for (std::int64_t units = study.tokens / unit; units > 0; units -= cut.slice_tokens.back() / unit) {
        cut.slice_tokens.push_back(unit * std::min<std::int64_t>(units, one_of({1, 2, 4, 8})));
      }
      layout.cuts.push_back(std::move(cut));
    }
  }

  // Every micro-batch with a cut of its own, of several documents a sequence.
  void cut_each() {
    study.documents = true;
    layout.own_slices = !layout.slices.empty();
    const std::int64_t unit = layout.sequence_parallel ? layout.mesh.tensor : 1;
    for (std::int64_t& longest : layout.slices) longest += unit * one_of({0, 1, 3});
  }

  std::string text() const { return study.text() + "; " + layout.text(); }
  Study study;
  Layout layout;

 private:
  // A pipeline of one stage has one cell.
  void choose_cells() {
    const pipeline::ScheduleTraits& traits = pipeline::traits_of(layout.schedule);
    layout.virtual_stages = 1;
    if (layout.mesh.pipeline > 1) {
      layout.virtual_stages = std::clamp(one_of({1, 2, 3}), traits.least_cells, traits.most_cells);
    } else if (traits.least_cells > 1) {
      layout.schedule = pipeline::ScheduleKind::kSeq1F1B;
    }
  }
  void choose_slices(bool may_slice) {
    const int unit = layout.sequence_parallel ? layout.mesh.tensor : 1;
    const bool sliced = pipeline::traits_of(layout.schedule).takes_slices;
    const int count = sliced && may_slice ? one_of({1, 2, 3, 5}) : 1;
    study.tokens = 0;
    for (int slice = 0; slice < count; ++slice) {
      layout.slices.push_back(unit * one_of({1, 1, 2, 4}));
      study.tokens += layout.slices.back();
    }
    if (count == 1) layout.slices.clear();
  }
  void choose_layers() {
    const int cells = layout.mesh.pipeline * layout.virtual_stages;
    for (int cell = 0; cell < cells; ++cell) layout.cell_layers.push_back(one_of({1, 1, 2}));
    study.config.num_layers = std::accumulate(layout.cell_layers.begin(), layout.cell_layers.end(), std::int64_t{0});
  }
  int one_of(std::initializer_list<int> values) { return *(values.begin() + random_() % values.size()); }
  std::mt19937 random_;
};

}  // namespace teratron::testing
