#include "train/slice_costs.h"

#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/threads.h"
#include "data/batch_sampler.h"

namespace teratron {
namespace {

// As the system names it; empty where it does not say.
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

const char* name_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::kNone: return "none";
    case Recompute::kSelective: return "selective";
    case Recompute::kFull: return "full";
  }
  return "";
}

plan::ProfileKey key_of(const TrainConfig& config) {
  const BatchSampler largest(config.largest_batch(), config.micro_batch_size, 0, config.data_parallel);
  return {.processor = processor_name(),
          .dtype = std::string(teratron::name_of(config.compute_dtype())),
          .recompute = name_of(config.recompute),
          .threads = thread_count(),
          .hidden_size = config.model.hidden_size,
          .ffn_hidden_size = 4 * config.model.hidden_size,
          .attention_heads = config.model.num_attention_heads,
          .layers = (config.model.num_layers + config.pipeline_parallel - 1) / config.pipeline_parallel,
          .tensor_parallel = config.tensor_parallel,
          .sequences = largest.largest_micro_batch()};
}

std::string profile_text(const TrainConfig& config) {
  if (config.profile.empty()) {
    throw_user_error(
        "--token-slices auto needs to know what slices cost here: measure with 'teratron profile' and give the file as "
        "--profile FILE, or give the slices, such as uniform:4");
  }
  return read_file(config.profile);
}

}  // namespace

std::optional<plan::Profile> slice_costs(const TrainConfig& config, Communicator& world) {
  if (config.token_slices != "auto" && config.profile.empty()) return std::nullopt;
  const bool reads = world.rank() == 0;
  const std::string text = world.all_gather_host(reads ? profile_text(config) : "").front();
  plan::Profile profile = plan::profile_from_json(text, config.profile);
  if (reads) plan::require_key(profile, key_of(config), config.profile);
  if (const std::int64_t longest = profile.forward.lengths.back(); config.seq_length > longest) {
    throw_user_error("--seq-length is {}, but '{}' was measured up to {} tokens; measure again with 'teratron profile'",
                     config.seq_length, config.profile.string(), longest);
  }
  return profile;
}

}  // namespace teratron
