#include "settings/step_settings.h"

#include <limits>

#include "pipeline/token_slices.h"
#include "settings/adapter_settings.h"

namespace teratron {
namespace {

constexpr std::int64_t kMostCount = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostRampSamples = std::int64_t{1} << 45;
constexpr std::int64_t kMostMicroBatch = 1 << 20;

constexpr Flag kGlobalBatchSize{"global-batch-size"}, kDataParallel{"data-parallel-size"}, kRamp{"rampup-batch-size"};

bool is_between(std::int64_t value, std::int64_t least, std::int64_t most) { return value >= least && value <= most; }

// Faults of the ramp's end. The numbers of the ramp and all that it depends on are in their ranges.
Faults ramp_end_faults(std::int64_t start, std::int64_t increment, std::int64_t end, std::int64_t copies) {
  Faults faults;
  faults.add_if(start < copies,
                "{0} starts with {1}: no sample for some of the copies of {2} {3}; the least that works is {3}", kRamp,
                start, kDataParallel, copies);
  faults.add_if(start > end, "{} starts with {}, above the {} of {} that it leads to", kRamp, start, kGlobalBatchSize,
                end);
  if (start > end) return faults;
  const std::int64_t below = start + (end - start) / increment * increment;
  faults.add_if(below != end, "{} {} {} .. never reaches {} {}; nearest that it reaches: {}, {}", kRamp, start,
                increment, kGlobalBatchSize, end, below, below + increment);
  faults.add_if((end - start) / increment > BatchSchedule::kMostIncrements,
                "{} takes {} increments; at most {}: choose a larger one", kRamp, (end - start) / increment,
                BatchSchedule::kMostIncrements);
  return faults;
}

Faults ramp_faults(const BatchSettings& s, std::int64_t copies) {
  const std::vector<std::int64_t>& ramp = s.rampup_batch_size;
  Faults faults;
  if (ramp.empty()) return faults;
  if (ramp.size() != 3) {
    faults.add("{} has {} number{}; three are needed: START INCREMENT SAMPLES", kRamp, ramp.size(),
               ramp.size() == 1 ? "" : "s");
    return faults;
  }
  const auto need = [&](std::string_view name, std::int64_t value, std::int64_t most) {
    faults.add_if(!is_between(value, 1, most), "{} has {} as {}; it must be at least 1 and at most {}", kRamp, value,
                  name, most);
  };
  need("START", ramp[0], kMostCount);
  need("INCREMENT", ramp[1], kMostCount);
  need("SAMPLES", ramp[2], kMostRampSamples);
  const bool sizes_make_sense = is_between(s.micro_batch_size, 1, kMostMicroBatch) &&
                                is_between(s.global_batch_size, 0, kMostCount) && is_between(copies, 1, kMostRanks);
  if (faults.empty() && sizes_make_sense) {
    faults.add(ramp_end_faults(ramp[0], ramp[1], s.largest_batch(copies), copies));
  }
  return faults;
}

Faults sequence_parallel_faults(const StepSettings& s) {
  Faults faults;
  if (!s.layout.sequence_parallel || s.model.seq_length < 1 || s.layout.tensor_parallel < 1) return faults;
  const std::int64_t below = s.model.seq_length / s.layout.tensor_parallel * s.layout.tensor_parallel;
  faults.add_if(below != s.model.seq_length, "{} needs a {} {} that {} {} divides; nearest: {}{}",
                Flag{"sequence-parallel"}, Flag{"seq-length"}, s.model.seq_length, Flag{"tensor-model-parallel-size"},
                s.layout.tensor_parallel, below > 0 ? fmt::format("{}, ", below) : "",
                below + s.layout.tensor_parallel);
  return faults;
}

}  // namespace

BatchSchedule BatchSettings::batches(std::int64_t data_parallel, const BatchesDone& done) const {
  const std::int64_t largest = largest_batch(data_parallel);
  if (rampup_batch_size.size() != 3) return BatchSchedule(largest, std::nullopt, done);
  return BatchSchedule(
      largest,
      BatchRamp{.start = rampup_batch_size[0], .increment = rampup_batch_size[1], .samples = rampup_batch_size[2]},
      done);
}

Faults BatchSettings::faults(std::int64_t data_parallel) const {
  Faults faults;
  faults.need_between({"micro-batch-size"}, micro_batch_size, 1, kMostMicroBatch);
  faults.need_between(kGlobalBatchSize, global_batch_size, 0, kMostCount);
  faults.add_if(global_batch_size >= 1 && global_batch_size < data_parallel,
                "{0} {1} has no sample for some of the copies of {2} {3}; the least that works is {3}",
                kGlobalBatchSize, global_batch_size, kDataParallel, data_parallel);
  faults.add(ramp_faults(*this, data_parallel));
  return faults;
}

void add_micro_batch_size_field(FieldList& list, BatchSettings& s) {
  list.add("micro-batch-size", &s.micro_batch_size, "N", "samples computed at a time; memory grows with it")
      .summarised();
}

void add_global_batch_fields(FieldList& list, BatchSettings& s) {
  list.add("global-batch-size", &s.global_batch_size, "N", "samples an update; 0: one micro-batch a copy").summarised();
  list.add("rampup-batch-size", &s.rampup_batch_size, "START INCREMENT SAMPLES",
           "begin with START samples an update and add INCREMENT after each equal part of SAMPLES samples, until "
           "--global-batch-size");
}

std::optional<WeightPacking> StepSettings::weight_packing() const {
  if (layout.packed_weights == PackWeights::kNone || backend.kind != BackendKind::kCpu) return std::nullopt;
  WeightPacking packing{.processor = {.compute_dtype = backend.compute_dtype()}};
  if (layout.packed_weights == PackWeights::kAll) return packing;
  packing.most_rows = WeightPacking::kMostUsefulRows;
  packing.fewest_products = 4;
  packing.as_memory_allows = true;
  return packing;
}

Faults StepSettings::faults() const {
  Faults faults = model.faults(layout.tensor_parallel);
  faults.add(layout.faults());
  faults.add(sequence_parallel_faults(*this));
  faults.add(pipeline_faults(*this));
  faults.add(backend.faults());
  faults.add(frozen_weights_faults(model.config.adapters, backend.weight_tiles));
  faults.add(batch.faults(layout.data_parallel));
  faults.add_if(layout.keep_activations == KeepActivations::kAll && layout.recomputation() != Recompute::kNone,
                "{} all keeps what {} computes again; give one of them", Flag{"keep-activations"},
                Flag{"recompute-granularity"});
  faults.add_if(layout.packed_weights == PackWeights::kAll && backend.kind != BackendKind::kCpu,
                "{} all is for products on CPUs, and {} is another; leave one of them out", Flag{"packed-weights"},
                Flag{"backend"});
  faults.need_between({"logits-chunk"}, logits_chunk, 0, std::numeric_limits<std::int32_t>::max());
  return faults;
}

std::vector<std::int64_t> StepSettings::micro_batch_sizes() const {
  std::vector<std::int64_t> sizes;
  if (!pipeline.token_slices.empty()) {
    for (const pipeline::MicroBatchCut& cut :
         pipeline::parse_token_slices("--token-slices", pipeline.token_slices).cuts) {
      sizes.push_back(cut.sequences);
    }
  }
  return sizes.empty() ? std::vector{batch.micro_batch_size} : sizes;
}

std::vector<std::int64_t> cell_layers(const StepSettings& settings) {
  if (const auto given = comma_separated(settings.pipeline.layout)) return *given;
  return pipeline::even_slices(settings.model.config.num_layers,
                               static_cast<int>(settings.layout.pipeline_parallel * settings.pipeline.virtual_stages));
}

void add_machine_fields(FieldList& list, StepSettings& s) {
  list.group("Machine");
  add_backend_fields(list, s.backend);
  add_process_fields(list, s.layout);
  list.add(
      "logits-chunk", &s.logits_chunk, "N",
      "rows of logits held in memory at a time (0: 256 on CPUs, 512 in 16 bits; on GPUs up to 8192, as memory allows)");
  list.add("config", &s.config_file, "FILE", "TOML file of these flags, written with underscores; flags override it")
      .of(FieldScope::kCommand)
      .role = FieldRole::kConfigFile;
}

}  // namespace teratron
