#include "train/plans/memory_remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "console/readable.h"
#include "model/negatives.h"

namespace teratron {
namespace {

// One flag of a remedy; the last of several rungs with one flag holds.
struct Rung {
  std::string flag, value;
  std::function<void(TrainConfig&)> change;
  bool keeps_values = true, keeps_samples = true;
};
using Rungs = std::vector<Rung>;

// The flags to try, in the order of the time that they cost.
class Ladder {
 public:
  Ladder(const TrainConfig& config, const MemoryRoom& room) : config_(config) {
    share(room);
    save_activations();
    round();
    shorten();
  }

  Rungs take() { return std::move(rungs_); }

 private:
  void add(std::string flag, std::string value, std::function<void(TrainConfig&)> change) {
    rungs_.push_back({std::move(flag), std::move(value), std::move(change)});
  }

  void share(const MemoryRoom& room) {
    const TrainingLayoutSettings& layout = config_.layout;
    if (layout.data_parallel > 1 && !layout.distributed_optimizer) {
      add("use-distributed-optimizer", "", [](TrainConfig& c) { c.layout.distributed_optimizer = true; });
    }
    if (layout.tensor_parallel > 1 && !layout.sequence_parallel) {
      add("sequence-parallel", "", [](TrainConfig& c) { c.layout.sequence_parallel = true; });
    }
    if (room.is_host && config_.output.async_save) {
      add("async-save", "false", [](TrainConfig& c) { c.output.async_save = false; });
    }
    if (!room.is_host || !room.has_all_ranks) return;  // copies elsewhere take nothing of this room
    for (std::int64_t copies = layout.data_parallel / 2; copies >= 1; copies /= 2) {
      add("dp", fmt::format("{}", copies), [copies](TrainConfig& c) { c.layout.data_parallel = copies; });
    }
  }

  void save_activations() {
    const auto recompute = [&](Recompute kind) {
      if (config_.layout.recomputation().uniform().value_or(Recompute::kNone) >= kind) return;
      add("recompute-granularity", name_of(kind), [kind](TrainConfig& c) { c.layout.recompute = name_of(kind); });
    };
    if (config_.layout.keep_activations == KeepActivations::kAll) {
      add("keep-activations", "none", [](TrainConfig& c) { c.layout.keep_activations = KeepActivations::kNone; });
    }
    if (config_.layout.packed_weights == PackWeights::kAll) {
      add("packed-weights", "none", [](TrainConfig& c) { c.layout.packed_weights = PackWeights::kNone; });
    }
    recompute(Recompute::kSelective);
    const std::int64_t together = config_.batch.samples_together;  // which the flag counts as one
    const bool is_kept = ranks_negatives(config_.model.config);
    for (std::int64_t size = is_kept ? 0 : config_.batch.micro_batch_size / together / 2; size >= 1; size /= 2) {
      add("micro-batch-size", fmt::format("{}", size),
          [size, together](TrainConfig& c) { c.batch.micro_batch_size = size * together; });
    }
    recompute(Recompute::kFull);
  }

  void round() {
    const BackendSettings& backend = config_.backend;
    const std::size_t before = rungs_.size();
    if (!config_.optimizer.bf16_moments) {
      add("optimizer-state", "bf16", [](TrainConfig& c) { c.optimizer.bf16_moments = true; });
    }
    if (!backend.bf16 && !backend.fp16 && backend.kind != BackendKind::kReference) {
      add("bf16", "", [](TrainConfig& c) { c.backend.bf16 = true; });
    }
    for (std::size_t i = before; i < rungs_.size(); ++i) rungs_[i].keeps_values = false;
  }

  void shorten() {
    constexpr std::int64_t kFewestTokens = 16;
    // A run that goes on may not read others; given slices are of this length.
    if (!config_.output.load.empty() || !config_.pipeline.token_slices.empty()) return;
    for (std::int64_t tokens = config_.model.seq_length / 2; tokens >= kFewestTokens; tokens /= 2) {
      add("seq-length", fmt::format("{}", tokens), [tokens](TrainConfig& c) { c.model.seq_length = tokens; });
      rungs_.back().keeps_samples = false;
    }
  }

  const TrainConfig& config_;
  Rungs rungs_;
};

// An update keeps its samples, whose number may follow from the micro-batch and the copies of the model.
bool needs_batch_flag(const TrainConfig& config, const Rungs& rungs) {
  return config.batch.global_batch_size == 0 && std::ranges::any_of(rungs, [](const Rung& rung) {
           return rung.flag == "dp" || rung.flag == "micro-batch-size";
         });
}

TrainConfig with(const TrainConfig& config, const Rungs& rungs) {
  TrainConfig changed = config;
  if (needs_batch_flag(config, rungs)) changed.batch.global_batch_size = config.largest_batch();
  for (const Rung& rung : rungs) rung.change(changed);
  return changed;
}

std::string text_of(const TrainConfig& config, const Rungs& rungs) {
  std::string text;
  for (const Rung& rung : rungs) {
    text += fmt::format("{}--{}{}{}", text.empty() ? "" : " ", rung.flag, rung.value.empty() ? "" : " ", rung.value);
  }
  if (needs_batch_flag(config, rungs)) text += fmt::format(" --global-batch-size {}", config.largest_batch());
  return text;
}

std::int64_t bytes_of(const TrainConfig& config, MemoryPlanContext context, const MemoryRoom& room, int ranks_before) {
  if (config.backend.bf16) context.compute_dtype = config.backend.compute_dtype();
  const std::int64_t ranks = config.layout.mesh().ranks();
  context.threads = static_cast<int>(context.threads * ranks_before / ranks);  // of one process, which ranks share out
  const std::vector<std::int64_t> stages = planned_memory(config, context);
  if (!room.has_all_ranks) return std::ranges::max(stages) * room.ranks;
  return std::accumulate(stages.begin(), stages.end(), std::int64_t{0}) * ranks / std::ssize(stages);
}

}  // namespace

std::optional<MemoryRemedy> memory_remedy(const TrainConfig& config, const MemoryPlanContext& context,
                                          const MemoryRoom& room, const HasFlag& has_flag) {
  const auto bytes_with = [&](const Rungs& rungs) {
    return bytes_of(with(config, rungs), context, room, static_cast<int>(config.layout.mesh().ranks()));
  };
  const auto works = [&](const Rungs& rungs) { return with(config, rungs).faults().empty(); };
  Rungs taken;
  bool fits = false;
  for (const Rung& rung : Ladder(config, room).take()) {
    if (has_flag && !has_flag(rung.flag)) continue;
    Rungs more = taken;
    std::erase_if(more, [&](const Rung& before) { return before.flag == rung.flag; });
    more.push_back(rung);
    if (!works(more)) continue;
    taken = std::move(more);
    fits = bytes_with(taken) <= room.bytes;
    if (fits) break;
  }
  if (!fits) return std::nullopt;
  // Again from the costliest after each flag that is dropped: memory need not fall with every flag that is kept.
  for (std::size_t i = taken.size(); i-- > 0;) {
    Rungs fewer = taken;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (!works(fewer) || bytes_with(fewer) > room.bytes) continue;
    taken = std::move(fewer);
    i = taken.size();
  }
  return MemoryRemedy{.flags = text_of(config, taken),
                      .bytes = bytes_with(taken),
                      .keeps_values = std::ranges::all_of(taken, &Rung::keeps_values),
                      .keeps_samples = std::ranges::all_of(taken, &Rung::keeps_samples)};
}

std::string memory_advice(const TrainConfig& config, const MemoryPlanContext& context, const MemoryRoom& room,
                          const HasFlag& has_flag) {
  const std::optional<MemoryRemedy> remedy = memory_remedy(config, context, room, has_flag);
  if (!remedy) {
    return "no flags were found that make it fit, not even with 16 bits and shorter samples; free memory, take a "
           "smaller model, or more devices ('teratron plan' finds a layout for them)";
  }
  return fmt::format("{} needs {}{}{}", remedy->flags, readable_bytes(static_cast<std::uint64_t>(remedy->bytes)),
                     remedy->keeps_values ? "" : " (with other rounding)",
                     remedy->keeps_samples ? "" : " (with shorter samples)");
}

}  // namespace teratron
