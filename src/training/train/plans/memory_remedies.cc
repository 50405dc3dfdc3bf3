#include "train/plans/memory_remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <sstream>

#include "console/readable.h"
#include "data/batch_sampler.h"

namespace teratron {
namespace {

constexpr std::int64_t kMostDevices = 64;  // times as many as now

// A configuration, and the flags by which it differs.
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
  if (from.config.layout.data_parallel == 1 || from.config.layout.distributed_optimizer) return {};
  return {
      from.with("--use-distributed-optimizer", 1.01, [](TrainConfig& c) { c.layout.distributed_optimizer = true; })};
}

Variants sharing_residuals(const Variant& from) {
  if (from.config.layout.tensor_parallel == 1 || from.config.layout.sequence_parallel) return {};
  return {from.with("--sequence-parallel", 1.005, [](TrainConfig& c) { c.layout.sequence_parallel = true; })};
}

Variants recomputing_more(const Variant& from) {
  Variants more;
  if (from.config.layout.recompute < Recompute::kSelective) {
    more.push_back(from.with("--recompute-granularity selective", 1.03,
                             [](TrainConfig& c) { c.layout.recompute = Recompute::kSelective; }));
  }
  if (from.config.layout.recompute < Recompute::kFull) {
    more.push_back(
        from.with("--recompute-granularity full", 1.33, [](TrainConfig& c) { c.layout.recompute = Recompute::kFull; }));
  }
  return more;
}

// An update keeps its samples, whose number would follow from the micro-batch and the copies of the model.
std::string batch_flag(const TrainConfig& config) {
  if (config.batch.global_batch_size != 0) return "";
  return fmt::format(" --global-batch-size {}", config.largest_batch());
}

Variants with_smaller_micro_batches(const Variant& from) {
  Variants more;
  double cost = 1;
  const std::int64_t together = from.config.batch.samples_together;  // which a flag counts as one
  for (std::int64_t size = from.config.batch.micro_batch_size / together / 2; size >= 1; size /= 2) {
    cost *= 1.05;
    more.push_back(
        from.with(fmt::format("--micro-batch-size {}{}", size, batch_flag(from.config)), cost, [&](TrainConfig& c) {
          c.batch.global_batch_size = c.largest_batch();
          c.batch.micro_batch_size = size * together;
        }));
  }
  return more;
}

// Schedules that hold what all micro-batches have made take them in parts. The bubble comes as often.
Variants with_more_flushes(const Variant& from) {
  const pipeline::ScheduleKind kind = schedule_kind(from.config.pipeline);
  if (kind != pipeline::ScheduleKind::kGpipe && kind != pipeline::ScheduleKind::kTeraPipe) return {};
  if (from.config.layout.pipeline_parallel == 1 || !from.config.faults().empty()) return {};
  const BatchSampler largest(from.config.largest_batch(), from.config.micro_batch_sizes(), 0,
                             from.config.layout.data_parallel, from.config.batch.samples_together);
  const std::int64_t micro_batches = largest.most_micro_batches();
  const auto work = static_cast<double>(micro_batches),
             bubble = static_cast<double>(from.config.layout.pipeline_parallel - 1);
  Variants more;
  for (std::int64_t flushes = std::max<std::int64_t>(4 * from.config.pipeline.flushes, 2);; flushes *= 4) {
    flushes = std::min(flushes, micro_batches);
    if (flushes <= from.config.pipeline.flushes) return more;
    more.push_back(from.with(fmt::format("--pipeline-flushes {}", flushes),
                             (work + static_cast<double>(flushes) * bubble) / (work + bubble),
                             [&](TrainConfig& c) { c.pipeline.flushes = flushes; }));
    if (flushes == micro_batches) return more;
  }
}

// Layouts of so many times the ranks, by tensors or by layers.
Variants on_devices(std::int64_t devices, const TrainConfig& config) {
  Variants layouts;
  for (std::int64_t stages = 1; stages <= devices; stages *= 2) {
    const std::int64_t tensor = config.layout.tensor_parallel * (devices / stages),
                       pipeline = config.layout.pipeline_parallel * stages;
    std::string flags;
    if (devices > stages) flags = fmt::format("--tp {}", tensor);
    if (stages > 1) flags += fmt::format("{}--pp {}", flags.empty() ? "" : " ", pipeline);
    // Stages wait for each other; a tensor-parallel group is best within a host, of eight devices as a rule.
    const double times = (1 + 0.02 * static_cast<double>(stages - 1)) * (devices > stages && tensor > 8 ? 1.5 : 1);
    const auto change = [&](TrainConfig& c) {
      c.layout.tensor_parallel = tensor;
      c.layout.pipeline_parallel = pipeline;
    };
    layouts.push_back(flags.empty() ? Variant{.config = config} : Variant{.config = config}.with(flags, times, change));
  }
  return layouts;
}

// Fewer copies of the model, where one process has all of them: its threads compute as much with fewer.
Variants with_fewer_copies(const TrainConfig& config) {
  Variants layouts;
  double times = 1;
  for (std::int64_t copies = config.layout.data_parallel / 2; copies >= 1; copies /= 2) {
    times *= 1.02;
    layouts.push_back(Variant{.config = config}.with(fmt::format("--dp {}{}", copies, batch_flag(config)), times,
                                                     [&](TrainConfig& c) {
                                                       c.batch.global_batch_size = c.largest_batch();
                                                       c.layout.data_parallel = copies;
                                                     }));
  }
  return layouts;
}

bool are_known(const std::string& flags, const HasFlag& has_flag) {
  if (!has_flag) return true;
  std::istringstream words(flags);
  for (std::string word; words >> word;) {
    if (word.starts_with("--") && !has_flag(word.substr(2))) return false;
  }
  return true;
}

// All that keep to a layout and have no faults; the one that takes least memory is the dearest.
Variants variants_of(const Variant& layout, const HasFlag& has_flag) {
  Variants variants = {layout};
  for (Variants (*const more_of)(const Variant&) :
       {sharing_optimizer, sharing_residuals, recomputing_more, with_smaller_micro_batches, with_more_flushes}) {
    const Variants before = variants;
    for (const Variant& from : before) std::ranges::move(more_of(from), std::back_inserter(variants));
  }
  std::erase_if(variants, [&](const Variant& variant) {
    return !are_known(variant.flags, has_flag) || !variant.config.faults().empty();
  });
  std::ranges::stable_sort(variants, {}, &Variant::cost);
  return variants;
}

Variants with_other_rounding(const TrainConfig& config) {
  const Variant from{.config = config};
  Variants more;
  const bool has_16_bits = config.backend.bf16 || config.backend.fp16 || config.backend.kind == BackendKind::kReference;
  const auto add_moments = [&](const Variant& variant) {
    if (config.optimizer.bf16_moments) return;
    more.push_back(
        variant.with("--optimizer-state bf16", 1.01, [](TrainConfig& c) { c.optimizer.bf16_moments = true; }));
  };
  add_moments(from);
  if (has_16_bits) return more;
  const Variant half = from.with("--bf16", 1.1, [](TrainConfig& c) { c.backend.bf16 = true; });
  more.push_back(half);
  add_moments(half);
  return more;
}

// The longest first.
Variants with_shorter_samples(const TrainConfig& config) {
  constexpr std::int64_t kFewestTokens = 16;
  Variants more;
  // A run that goes on may not read others; given slices are of this length.
  if (!config.output.load.empty() || !config.pipeline.token_slices.empty()) return more;
  for (std::int64_t tokens = config.model.seq_length / 2; tokens >= kFewestTokens; tokens /= 2) {
    more.push_back(Variant{.config = config}.with(fmt::format("--seq-length {}", tokens), 1,
                                                  [&](TrainConfig& c) { c.model.seq_length = tokens; }));
  }
  return more;
}

// The largest first: other presets where the model is one, else fewer layers.
Variants with_smaller_models(const TrainConfig& config) {
  const Variant from{.config = config};
  Variants more;
  if (!config.output.load.empty() || !config.output.finetune.empty()) return more;  // whose weights have a shape
  if (config.model.has_preset_shape()) {
    for (const ModelPreset& preset : model_presets()) {
      if (preset.kind != config.model.config.kind) continue;
      more.push_back(from.with(fmt::format("--model {}", preset.name), 1, [&](TrainConfig& c) {
        c.model.preset = preset.name;
        c.model.config.num_layers = preset.num_layers;
        c.model.config.hidden_size = preset.hidden_size;
        c.model.config.num_attention_heads = preset.num_attention_heads;
      }));
    }
  } else {
    for (std::int64_t layers = config.model.config.num_layers - 1; layers >= 1; --layers) {
      more.push_back(from.with(fmt::format("--num-layers {}", layers), 1,
                               [&](TrainConfig& c) { c.model.config.num_layers = layers; }));
    }
  }
  const auto size = [](const Variant& variant) { return variant.config.model.model_for(1).parameters(); };
  std::erase_if(more, [&](const Variant& variant) { return size(variant) >= size(from); });
  std::ranges::stable_sort(more, std::greater(), size);
  return more;
}

// That the ranks which share the room take.
std::int64_t bytes_in(const MemoryRoom& room, const TrainConfig& config, const std::vector<std::int64_t>& stages) {
  if (!room.has_all_ranks) return *std::ranges::max_element(stages) * room.ranks;
  return std::accumulate(stages.begin(), stages.end(), std::int64_t{0}) * config.layout.tensor_parallel *
         config.layout.data_parallel;
}

// Finds what fits into one room.
class RemedySearch {
 public:
  RemedySearch(const TrainConfig& config, const MemoryPlanContext& context, const MemoryRoom& room,
               const HasFlag& has_flag)
      : config_(config), context_(context), room_(room), has_flag_(has_flag) {}

  bool fits(const Variant& variant) const { return bytes_of(variant) <= room_.bytes; }

  std::int64_t bytes_of(const Variant& variant) const {
    MemoryPlanContext context = context_;
    if (variant.config.backend.bf16 != config_.backend.bf16)
      context.compute_dtype = variant.config.backend.compute_dtype();
    // Ranks of one process share out its threads.
    context.threads = context.threads * config_.layout.mesh().ranks() / variant.config.layout.mesh().ranks();
    return bytes_in(room_, variant.config, planned_memory(variant.config, context));
  }

  // The cheapest of those that fit and keep to one of these layouts; nothing where none does.
  std::optional<Variant> cheapest(const Variants& layouts) const {
    Variants variants;
    for (const Variant& layout : layouts) {
      Variants of_layout = variants_of(layout, has_flag_);
      if (of_layout.empty() || !fits(of_layout.back())) continue;
      std::ranges::move(of_layout, std::back_inserter(variants));
    }
    std::ranges::stable_sort(variants, {}, &Variant::cost);
    const auto found = std::ranges::find_if(variants, [&](const Variant& variant) { return fits(variant); });
    return found == variants.end() ? std::nullopt : std::optional(*found);
  }

  // The same of the first of `wanted` of which any fits, as it is or with other rounding.
  std::optional<Variant> first(const Variants& wanted) const {
    for (const Variant& one : wanted) {
      if (std::optional<Variant> found = cheapest({one})) return found;
      Variants rounded;
      for (const Variant& rounding : with_other_rounding(one.config)) {
        rounded.push_back({rounding.config, fmt::format("{} {}", one.flags, rounding.flags), rounding.cost});
      }
      if (std::optional<Variant> found = cheapest(rounded)) return found;
    }
    return std::nullopt;
  }

  MemoryRemedy remedy(const Variant& variant, std::int64_t devices, RemedyChanges changes) const {
    return {.flags = variant.flags, .bytes = bytes_of(variant), .devices = devices, .changes = changes};
  }

 private:
  const TrainConfig& config_;
  const MemoryPlanContext& context_;
  const MemoryRoom& room_;
  const HasFlag& has_flag_;
};

std::string text_of(const MemoryRemedy& remedy) {
  std::string text = fmt::format("{} needs {}", remedy.flags, readable_bytes(static_cast<std::uint64_t>(remedy.bytes)));
  if (remedy.devices > 1) text += fmt::format(" on each of {} times as many devices", remedy.devices);
  switch (remedy.changes) {
    case RemedyChanges::kNothing: break;
    case RemedyChanges::kRounding: return text + " (with other rounding)";
    case RemedyChanges::kSamples: return text + " (with shorter samples)";
    case RemedyChanges::kModel: return text + " (a smaller model)";
  }
  return text;
}

}  // namespace

std::vector<MemoryRemedy> memory_remedies(const TrainConfig& config, const MemoryPlanContext& context,
                                          const MemoryRoom& room, const HasFlag& has_flag) {
  const RemedySearch search(config, context, room, has_flag);
  std::vector<MemoryRemedy> remedies;
  for (std::int64_t devices = 1; devices <= (room.is_host ? 1 : kMostDevices); devices *= 2) {
    Variants layouts = on_devices(devices, config);
    if (room.is_host && room.has_all_ranks) {
      std::ranges::move(with_fewer_copies(config), std::back_inserter(layouts));
    }
    if (const std::optional<Variant> found = search.cheapest(layouts)) {
      remedies.push_back(search.remedy(*found, devices, RemedyChanges::kNothing));
    }
    if (devices > 1 && !remedies.empty() && remedies.back().devices > 1) break;
  }
  return remedies;
}

std::vector<MemoryRemedy> lossy_memory_remedies(const TrainConfig& config, const MemoryPlanContext& context,
                                                const MemoryRoom& room, const HasFlag& has_flag) {
  const RemedySearch search(config, context, room, has_flag);
  std::vector<MemoryRemedy> remedies;
  const auto add = [&](const std::optional<Variant>& found, RemedyChanges changes) {
    if (found) remedies.push_back(search.remedy(*found, 1, changes));
  };
  add(search.cheapest(with_other_rounding(config)), RemedyChanges::kRounding);
  add(search.first(with_shorter_samples(config)), RemedyChanges::kSamples);
  add(search.first(with_smaller_models(config)), RemedyChanges::kModel);
  return remedies;
}

std::string memory_advice(const TrainConfig& config, const MemoryPlanContext& context, const MemoryRoom& room,
                          const HasFlag& has_flag) {
  std::vector<MemoryRemedy> remedies = memory_remedies(config, context, room, has_flag);
  if (remedies.empty()) remedies = lossy_memory_remedies(config, context, room, has_flag);
  std::string text;
  for (const MemoryRemedy& remedy : remedies) text += fmt::format("{}{}", text.empty() ? "" : "; ", text_of(remedy));
  if (!text.empty()) return text;
  return "no flags were found that make it fit, not even by 16 bits, shorter samples or a smaller model; free memory, "
         "or take a machine with more";
}

}  // namespace teratron
