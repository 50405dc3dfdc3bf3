#include "plan/reproduction/published_contradictions.h"

#include <tuple>

#include "cluster/cluster_file.h"

namespace teratron::plan {
namespace {

// All that two runs must have in common.
auto kind_of_run(const PublishedRun& run) {
  const ModelConfig& m = run.model;
  return std::tuple(run.program, m.num_layers, m.hidden_size, m.num_attention_heads, m.intermediate_size, m.vocab_size,
                    run.tensor, run.stages, run.cells, run.context, run.is_fp8, run.is_compiled, run.sums_in_fp32,
                    run.sharding, run.recompute, run.offload);
}

bool has_no_more(const PublishedRun& other, const PublishedRun& run) {
  if (other.tokens < run.tokens || other.micro_batch * other.tokens > run.micro_batch * run.tokens) return false;
  // More devices have more ways to the hosts' memory for what lies there.
  if (other.devices != run.devices && !run.offload.empty()) return false;
  if (other.cluster == run.cluster) {
    return other.devices >= run.devices && (other.devices > run.devices || other.tokens > run.tokens);
  }
  const Device a = find_cluster(other.cluster).device, b = find_cluster(run.cluster).device;
  return other.devices == run.devices && a.peak_16 == b.peak_16 && a.memory_bandwidth < b.memory_bandwidth;
}

}  // namespace

const PublishedRun* contradiction_of(const PublishedRun& run, std::span<const PublishedRun> runs) {
  if (!run.tokens_per_second) return nullptr;
  for (const PublishedRun& other : runs) {
    if (!other.tokens_per_second || kind_of_run(other) != kind_of_run(run) || !has_no_more(other, run)) continue;
    if (*other.tokens_per_second > (1 + kMostOfWeakerRun) * *run.tokens_per_second) return &other;
  }
  return nullptr;
}

}  // namespace teratron::plan
