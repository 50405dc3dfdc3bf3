// ExecutorOptions: sizes and purpose of an executor.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "executor/preferences.h"
#include "executor/recomputation.h"
#include "ops/backend.h"
#include "optim/optimizer.h"
#include "pipeline/schedule.h"

namespace teratron {

enum class Purpose { kTraining, kEvaluation, kGeneration };

// Weights of which a training step, or an evaluation, keeps packed copies (executor/packed_weights.h), on a CPU.
struct WeightPacking {
  // Beyond these, copies save too little time for their memory (bench/results/pipeline_bound.md): packing takes a fifth
  // of a product of 33 rows, and less of larger ones.
  static constexpr std::int64_t kMostUsefulRows = 512;

  CpuOptions processor;  // those of the back end
  // Products of a weight that has copies: rows of the largest, and how many a step of training has.
  std::int64_t most_rows = std::numeric_limits<std::int64_t>::max();
  std::int64_t fewest_products = 2;
  bool as_memory_allows = false;  // executor/memory_choices.h
};

struct ExecutorOptions {
  Purpose purpose = Purpose::kTraining;
  std::int64_t batch = 1;   // most sequences in one call
  std::int64_t tokens = 0;  // most tokens of one sequence in one call
  // Key/value caches of generation, one for each sequence, and their capacity in tokens (0: the model's positions). A
  // call extends one sequence, or each by one token.
  std::int64_t caches = 1, cache_tokens = 0;
  std::int64_t logits_chunk = 0;  // rows of logits that exist at a time; 0: see executor/memory_choices.h
  // Tiles that hold the matrices of products and the token table, in training those that are frozen. Nothing: the
  // compute type does.
  std::optional<DType> weight_tiles;
  bool first_keys = false, position_ids = false;  // micro-batches may have these inputs
  // Training only. Actions of the stages in a step with the most micro-batches; it has as many stages as the mesh, and
  // is vocabulary-parallel if the model is. No actions: one stage runs schedule.micro_batches one after another. With
  // several slices, every sequence has `tokens` tokens.
  pipeline::Schedule schedule;
  // Cuts of the schedule's micro-batches; the last one stands for all that follow. A cut's slices have `tokens` tokens
  // together, its sequences are the most that the micro-batch may have. Slices of more tokens together are the longest
  // that there may be, and each micro-batch says how it is cut. Empty: `batch` sequences, whole.
  std::vector<pipeline::MicroBatchCut> cuts;
  Recomputation recompute = {};
  // In each cell so many layers, the last ones, keep what is cheap to make again (KeptActivations::cheap_ones), but for
  // those that recompute makes again. Nothing: as many as a device has memory for (executor/memory_choices.h).
  std::optional<std::int64_t> kept_layers = 0;
  std::optional<WeightPacking> packed_weights = std::nullopt;
  bool sequence_parallel = false;  // batch * tokens of every call is a multiple of the tensor-parallel ranks
  bool shard_optimizer = false;    // the optimizer's state is shared out over the data-parallel ranks
  bool tallies = false;            // every step keeps them (executor/step_tallies.h)
  // Micro-batches have pairs of answers, whose loss takes the place of the model's. The model has adapters; slices of
  // tokens do not go together with a vocabulary that stages share out.
  std::optional<PreferenceConfig> preferences = std::nullopt;
  std::shared_ptr<const Optimizer> optimizer = nullptr;  // null: AdamW with its usual settings
  // With several stages, for any purpose.
  std::vector<std::int64_t> cell_layers;  // layers of each cell; empty: as many in each

  bool trains() const { return purpose == Purpose::kTraining; }
};

// ExecutorOptions::cuts of micro-batches that are all cut alike; no slices: not at all.
inline std::vector<pipeline::MicroBatchCut> cut_alike(std::int64_t sequences, std::vector<std::int64_t> slice_tokens) {
  if (slice_tokens.empty()) return {};
  return {{.sequences = sequences, .slice_tokens = std::move(slice_tokens)}};
}

}  // namespace teratron
