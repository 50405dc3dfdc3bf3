#include "settings/step_settings.h"

#include <limits>

#include "pipeline/token_slices.h"

namespace teratron {
namespace {

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

Faults StepSettings::faults() const {
  Faults faults = model.faults(layout.tensor_parallel);
  faults.add(layout.faults());
  faults.add(sequence_parallel_faults(*this));
  faults.add(pipeline_faults(*this));
  faults.add(backend.faults());
  faults.add(batch.faults(layout.data_parallel));
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
  if (!settings.pipeline.layout.empty()) return comma_separated(settings.pipeline.layout).value();
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
