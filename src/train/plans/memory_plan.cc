#include "train/plans/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "console/readable.h"
#include "data/batch_sampler.h"
#include "executor/logits_chunk.h"
#include "executor/stage/stage_plan.h"
#include "model/make_model.h"

namespace teratron {
namespace {

constexpr std::int64_t kMostDevices = 64;  // times as many as now

// A configuration of the same model and updates, and the flags by which it differs.
struct Variant {
  TrainConfig config;
  std::string flags;
  double cost = 1;  // roughly how many times as long a step takes: it orders variants, no more

  // With one more flag; `change` makes it in the configuration.
  Variant with(const std::string& flag, double times, const std::function<void(TrainConfig&)>& change) const {
    Variant other = *this;
    other.flags += fmt::format("{}{}", flags.empty() ? "" : " ", flag);
    other.cost *= times;
    change(other.config);
    return other;
  }
};
using Variants = std::vector<Variant>;

Variants sharing_optimizer(const Variant& from) {
  if (from.config.data_parallel == 1 || from.config.distributed_optimizer) return {};
  return {from.with("--use-distributed-optimizer", 1.01, [](TrainConfig& c) { c.distributed_optimizer = true; })};
}

Variants sharing_residuals(const Variant& from) {
  if (from.config.tensor_parallel == 1 || from.config.sequence_parallel) return {};
  return {from.with("--sequence-parallel", 1.005, [](TrainConfig& c) { c.sequence_parallel = true; })};
}

Variants recomputing_more(const Variant& from) {
  Variants more;
  if (from.config.recompute < Recompute::kSelective) {
    more.push_back(from.with("--recompute-granularity selective", 1.03,
                             [](TrainConfig& c) { c.recompute = Recompute::kSelective; }));
  }
  if (from.config.recompute < Recompute::kFull) {
    more.push_back(
        from.with("--recompute-granularity full", 1.33, [](TrainConfig& c) { c.recompute = Recompute::kFull; }));
  }
  return more;
}

Variants with_smaller_micro_batches(const Variant& from) {
  Variants more;
  double cost = 1;
  for (std::int64_t size = from.config.micro_batch_size / 2; size >= 1; size /= 2) {
    cost *= 1.05;
    // The update keeps its samples, which would follow from the micro-batch.
    const std::int64_t batch = from.config.largest_batch();
    const bool is_given = from.config.global_batch_size != 0;
    const std::string flags =
        fmt::format("--micro-batch-size {}{}", size, is_given ? "" : fmt::format(" --global-batch-size {}", batch));
    more.push_back(from.with(flags, cost, [&](TrainConfig& c) {
      c.micro_batch_size = size;
      c.global_batch_size = batch;
    }));
  }
  return more;
}

// Schedules that hold what all micro-batches have made take them in parts. The bubble comes as often.
Variants with_more_flushes(const Variant& from) {
  const pipeline::ScheduleKind kind = schedule_kind(from.config);
  if (kind != pipeline::ScheduleKind::kGpipe && kind != pipeline::ScheduleKind::kTeraPipe) return {};
  if (from.config.pipeline_parallel == 1 || !from.config.faults().empty()) return {};
  const BatchSampler largest(from.config.largest_batch(), from.config.micro_batch_sizes(), 0,
                             from.config.data_parallel);
  const std::int64_t micro_batches = largest.most_micro_batches();
  const auto work = static_cast<double>(micro_batches), bubble = static_cast<double>(from.config.pipeline_parallel - 1);
  Variants more;
  for (std::int64_t flushes = std::max<std::int64_t>(4 * from.config.flushes, 2);; flushes *= 4) {
    flushes = std::min(flushes, micro_batches);
    if (flushes <= from.config.flushes) return more;
    more.push_back(from.with(fmt::format("--pipeline-flushes {}", flushes),
                             (work + static_cast<double>(flushes) * bubble) / (work + bubble),
                             [&](TrainConfig& c) { c.flushes = flushes; }));
    if (flushes == micro_batches) return more;
  }
}

// Layouts of so many times the ranks, by tensors or by layers.
Variants on_devices(std::int64_t devices, const TrainConfig& config) {
  Variants layouts;
  for (std::int64_t stages = 1; stages <= devices; stages *= 2) {
    const std::int64_t tensor = config.tensor_parallel * (devices / stages),
                       pipeline = config.pipeline_parallel * stages;
    std::string flags;
    if (devices > stages) flags = fmt::format("--tp {}", tensor);
    if (stages > 1) flags += fmt::format("{}--pp {}", flags.empty() ? "" : " ", pipeline);
    // Stages wait for each other; a tensor-parallel group is best within a host, of eight devices as a rule.
    const double times = (1 + 0.02 * static_cast<double>(stages - 1)) * (devices > stages && tensor > 8 ? 1.5 : 1);
    const auto change = [&](TrainConfig& c) {
      c.tensor_parallel = tensor;
      c.pipeline_parallel = pipeline;
    };
    layouts.push_back(flags.empty() ? Variant{.config = config} : Variant{.config = config}.with(flags, times, change));
  }
  return layouts;
}

// All that keep to a layout and have no faults; the one that takes least memory is the dearest.
Variants variants_of(const Variant& layout) {
  Variants variants = {layout};
  for (Variants (*const more_of)(const Variant&) :
       {sharing_optimizer, sharing_residuals, recomputing_more, with_smaller_micro_batches, with_more_flushes}) {
    const Variants before = variants;
    for (const Variant& from : before) std::ranges::move(more_of(from), std::back_inserter(variants));
  }
  std::erase_if(variants, [](const Variant& variant) { return !variant.config.faults().empty(); });
  std::ranges::stable_sort(variants, {}, &Variant::cost);
  return variants;
}

// That the ranks which share the room take.
std::int64_t bytes_in(const MemoryRoom& room, const TrainConfig& config, const std::vector<std::int64_t>& stages) {
  if (!room.has_all_ranks) return *std::ranges::max_element(stages) * room.ranks;
  return std::accumulate(stages.begin(), stages.end(), std::int64_t{0}) * config.tensor_parallel * config.data_parallel;
}

}  // namespace

ExecutorOptions training_options(const TrainConfig& config, const PipelinePlan& pipeline) {
  // Every rank plans for the largest share of the largest batch.
  const std::int64_t batch = pipeline.largest_micro_batch(config);
  return {.purpose = Purpose::kTraining,
          .batch = batch,
          .tokens = config.seq_length,
          .logits_chunk = config.rows_of_logits(),
          .first_keys = config.reset_attention_mask,
          .position_ids = config.reset_position_ids,
          .schedule = pipeline.schedule_of_all(),
          .cuts = pipeline.cuts_of_all(batch, config.seq_length),
          .recompute = config.recompute,
          .sequence_parallel = config.sequence_parallel,
          .shard_optimizer = config.distributed_optimizer,
          .bf16_moments = config.bf16_moments,
          .cell_layers = pipeline.cell_layers};
}

std::vector<std::int64_t> planned_memory(const TrainConfig& config, const MemoryPlanContext& context) {
  std::vector<int> stages(static_cast<std::size_t>(config.pipeline_parallel));
  std::iota(stages.begin(), stages.end(), 0);
  return planned_memory(config, context, stages);
}

std::vector<std::int64_t> planned_memory(const TrainConfig& config, const MemoryPlanContext& context,
                                         std::span<const int> stages) {
  ExecutorOptions options = training_options(config, plan_pipeline(config, context.profiles));
  if (options.logits_chunk == 0) options.logits_chunk = kFewestRowsOfLogits;
  const MeshShape mesh = config.mesh();
  std::vector<std::int64_t> bytes;
  for (const int stage : stages) {
    const RankPlace place = rank_place(mesh, stage * mesh.tensor);
    const std::unique_ptr<Model> model = make_model(config.model_for(context.vocab_size), place.tensor);
    const StagePlan plan(*model, options, place, context.compute_dtype);
    bytes.push_back(plan.memory().arena().bytes());
    if (context.threads > 0)
      bytes.back() += cpu_working_bytes(plan.work(), {.compute_dtype = context.compute_dtype}, context.threads);
  }
  return bytes;
}

std::vector<MemoryRemedy> memory_remedies(const TrainConfig& config, const MemoryPlanContext& context,
                                          const MemoryRoom& room) {
  const auto bytes_of = [&](const Variant& variant) {
    return bytes_in(room, variant.config, planned_memory(variant.config, context));
  };
  std::vector<MemoryRemedy> remedies;
  for (std::int64_t devices = 1; devices <= (room.is_host ? 1 : kMostDevices); devices *= 2) {
    Variants variants;
    for (const Variant& layout : on_devices(devices, config)) {
      Variants of_layout = variants_of(layout);
      if (of_layout.empty() || bytes_of(of_layout.back()) > room.bytes) continue;
      std::ranges::move(of_layout, std::back_inserter(variants));
    }
    std::ranges::stable_sort(variants, {}, &Variant::cost);
    for (const Variant& variant : variants) {
      const std::int64_t bytes = bytes_of(variant);
      if (bytes > room.bytes) continue;
      remedies.push_back({variant.flags, bytes, devices});
      break;
    }
    if (devices > 1 && !remedies.empty() && remedies.back().devices > 1) break;
  }
  return remedies;
}

std::string memory_advice(const TrainConfig& config, const MemoryPlanContext& context, const MemoryRoom& room) {
  std::string text;
  for (const MemoryRemedy& remedy : memory_remedies(config, context, room)) {
    text += fmt::format("{}{} needs {}{}", text.empty() ? "" : "; ", remedy.flags,
                        readable_bytes(static_cast<std::uint64_t>(remedy.bytes)),
                        remedy.devices > 1 ? fmt::format(" on each of {} times as many devices", remedy.devices) : "");
  }
  if (!text.empty()) return text;
  return "no --recompute-granularity and no --micro-batch-size makes it fit; take a shorter --seq-length or a smaller "
         "model";
}

}  // namespace teratron
