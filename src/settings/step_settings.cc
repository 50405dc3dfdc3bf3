#include "settings/step_settings.h"

#include <limits>

#include "pipeline/token_slices.h"

namespace teratron {
namespace {

Faults sequence_parallel_faults(const StepSettings& s) {
  Faults faults;
  if (!s.sequence_parallel || s.seq_length < 1 || s.tensor_parallel < 1) return faults;
  const std::int64_t below = s.seq_length / s.tensor_parallel * s.tensor_parallel;
  faults.add_if(below != s.seq_length, "{} needs a {} {} that {} {} divides; nearest: {}{}", Flag{"sequence-parallel"},
                Flag{"seq-length"}, s.seq_length, Flag{"tensor-model-parallel-size"}, s.tensor_parallel,
                below > 0 ? fmt::format("{}, ", below) : "", below + s.tensor_parallel);
  return faults;
}

}  // namespace

Faults StepSettings::faults() const {
  Faults faults = ModelSettings::faults(tensor_parallel);
  faults.add(LayoutSettings::faults());
  faults.add(sequence_parallel_faults(*this));
  faults.add(pipeline_faults(*this));
  faults.add(BackendSettings::faults());
  faults.add(BatchSettings::faults(data_parallel));
  faults.need_between({"logits-chunk"}, logits_chunk, 0, std::numeric_limits<std::int32_t>::max());
  return faults;
}

std::vector<std::int64_t> StepSettings::micro_batch_sizes() const {
  std::vector<std::int64_t> sizes;
  if (!token_slices.empty()) {
    for (const pipeline::MicroBatchCut& cut : pipeline::parse_token_slices("--token-slices", token_slices).cuts) {
      sizes.push_back(cut.sequences);
    }
  }
  return sizes.empty() ? std::vector{micro_batch_size} : sizes;
}

std::vector<std::int64_t> cell_layers(const StepSettings& settings) {
  if (!settings.pipeline_layout.empty()) return comma_separated(settings.pipeline_layout).value();
  return pipeline::even_slices(settings.model.num_layers,
                               static_cast<int>(settings.pipeline_parallel * settings.virtual_stages));
}

void add_machine_fields(FieldList& list, StepSettings& s) {
  list.group("Machine");
  add_backend_fields(list, s);
  add_process_fields(list, s);
  list.add(
      "logits-chunk", &s.logits_chunk, "N",
      "rows of logits held in memory at a time (0: 256 on CPUs, 512 in 16 bits; on GPUs up to 8192, as memory allows)");
  list.add("config", &s.config_file, "FILE", "TOML file of these flags, written with underscores; flags override it")
      .role = FieldRole::kConfigFile;
}

}  // namespace teratron
