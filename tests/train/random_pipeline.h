// Training configurations with a random pipeline.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/philox.h"
#include "model/family.h"
#include "pipeline/token_slices.h"
#include "train/config/config.h"
#include "train/plans/pipeline_plan.h"

namespace teratron::testing {

// `total` in so many parts of one or more.
inline std::vector<std::int64_t> random_parts(RandomSequence& random, std::int64_t total, std::int64_t parts) {
  std::vector<std::int64_t> list(static_cast<std::size_t>(parts), 1);
  for (std::int64_t left = total - parts; left > 0; --left) ++list[random.below(list.size())];
  return list;
}

// Micro-batches of random sizes, each with slices of its own, for the settings' largest batch.
inline std::string random_cuts(const TrainConfig& c, std::int64_t unit, RandomSequence& random) {
  std::vector<pipeline::MicroBatchCut> cuts;
  for (std::int64_t left = (c.largest_batch() + c.layout.data_parallel - 1) / c.layout.data_parallel; left > 0;) {
    const std::int64_t most = unit > 1 ? 1 : cuts.empty() ? 3 : cuts.front().sequences;
    const std::int64_t sequences = std::min({left, most, 1 + static_cast<std::int64_t>(random.below(3))});
    std::vector<std::int64_t> lengths =
        random_parts(random, c.model.seq_length / unit, 1 + static_cast<std::int64_t>(random.below(4)));
    for (std::int64_t& length : lengths) length *= unit;
    cuts.push_back({.sequences = sequences, .slice_tokens = std::move(lengths)});
    left -= sequences;
  }
  return pipeline::text_of(cuts);
}

// A way of each stage, of some of the layers of its cells, and of the slices where these are given.
inline std::string random_recompute(const TrainConfig& c, RandomSequence& random) {
  const int slices =
      c.pipeline.token_slices.empty() ? 1 : pipeline::parse_token_slices("slices", c.pipeline.token_slices).count;
  std::vector<StageRecompute> stages(static_cast<std::size_t>(c.layout.pipeline_parallel));
  for (StageRecompute& stage : stages) {
    stage.kind = static_cast<Recompute>(random.below(3));
    if (stage.kind == Recompute::kNone) continue;
    stage.layers = static_cast<std::int64_t>(random.below(3));
    if (slices > 1) stage.slices = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(slices)));
  }
  return Recomputation(stages).text();
}

// Any pipeline, sliced or not, of 8 ranks at most. The heads are a multiple of 2, the layers at least 4, the sequence
// is a multiple of 2.
inline TrainConfig random_pipeline(const TrainConfig& config, RandomSequence& random) {
  const auto one_of = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random.below(values.size())));
  };
  TrainConfig c = config;
  const pipeline::ScheduleKind kind = pipeline::kScheduleKinds[random.below(pipeline::kScheduleKinds.size())];
  const pipeline::ScheduleTraits& traits = pipeline::traits_of(kind);
  c.pipeline.schedule = kind;
  c.layout.pipeline_parallel = traits.least_cells > 1 ? 2 : one_of({1, 2, 2, 3, 4});
  c.layout.tensor_parallel = c.layout.pipeline_parallel <= 3 ? one_of({1, 1, 2}) : 1;
  c.layout.data_parallel = c.layout.pipeline_parallel * c.layout.tensor_parallel <= 4 ? one_of({1, 2}) : 1;
  c.batch.micro_batch_size = one_of({1, 1, 2, 3});
  c.layout.distributed_optimizer = random.below(2) == 0;
  c.layout.recompute = name_of(static_cast<Recompute>(random.below(3)));
  c.pipeline.defer_weight_gradients = random.below(2) == 0;
  c.pipeline.virtual_stages = c.layout.pipeline_parallel == 2
                                  ? std::clamp<std::int64_t>(one_of({1, 2}), traits.least_cells, traits.most_cells)
                                  : 1;
  c.layout.sequence_parallel = c.layout.tensor_parallel > 1 && random.below(2) == 0;
  const std::int64_t unit = c.layout.sequence_parallel ? c.layout.tensor_parallel : 1;
  if (traits.takes_slices) {
    const std::int64_t count = one_of({2, 3, 5});
    std::vector<std::int64_t> lengths = random_parts(random, c.model.seq_length / unit, count);
    for (std::int64_t& length : lengths) length *= unit;
    c.pipeline.token_slices =
        random.below(3) == 0 ? fmt::format("uniform:{}", count) : fmt::format("{}", fmt::join(lengths, ","));
    if (c.layout.sequence_parallel) c.batch.micro_batch_size = 1;
    if (random.below(3) == 0) c.pipeline.token_slices = random_cuts(c, unit, random);
  }
  if (traits.holds_all) {
    const bool is_joint = c.pipeline.token_slices.find('x') != std::string::npos;
    const std::int64_t share = (c.largest_batch() + c.layout.data_parallel - 1) / c.layout.data_parallel;
    c.pipeline.flushes =
        is_joint ? 1 : one_of({1, 1, (share + c.batch.micro_batch_size - 1) / c.batch.micro_batch_size, 2});
    c.pipeline.flushes =
        std::min(c.pipeline.flushes, (share + c.batch.micro_batch_size - 1) / c.batch.micro_batch_size);
  }
  c.pipeline.vocabulary_parallel =
      c.layout.pipeline_parallel > 1 && c.model.config.family().continues_text && random.below(3) == 0;
  c.backend.guard_memory = random.below(4) == 0;
  const std::int64_t cells = c.layout.pipeline_parallel * c.pipeline.virtual_stages;
  if (c.model.config.num_layers % cells != 0 || random.below(2) == 0) {
    c.pipeline.layout = fmt::format("{}", fmt::join(random_parts(random, c.model.config.num_layers, cells), ","));
  }
  if (random.below(2) == 0) c.layout.recompute = random_recompute(c, random);
  return c;
}

inline std::string text_of_layout(const TrainConfig& c) {
  return fmt::format(
      "tp {}{} pp {} dp {}{} micro-batches of {} recompute {}{}{} {} layout '{}' slices '{}' v {}{} flushes {}",
      c.layout.tensor_parallel, c.layout.sequence_parallel ? " sequence-parallel" : "", c.layout.pipeline_parallel,
      c.layout.data_parallel, c.layout.distributed_optimizer ? " sharded" : "", c.batch.micro_batch_size,
      c.layout.recompute, c.pipeline.defer_weight_gradients ? " deferred" : "",
      c.pipeline.vocabulary_parallel ? " vocabulary parallel" : "", pipeline::name_of(schedule_kind(c.pipeline)),
      c.pipeline.layout, c.pipeline.token_slices, c.pipeline.virtual_stages, c.backend.guard_memory ? " guarded" : "",
      c.pipeline.flushes);
}

}  // namespace teratron::testing
