#include "executor/device_memory.h"

#include <algorithm>

#include "executor/pass_graphs.h"

namespace teratron {
namespace {

// Estimated bytes of a captured pass of a layer: some 32 kernels, each with its parameters, which may be of
// 4 KiB. No card has shown yet how many it takes.
constexpr std::int64_t kBytesOfGraph = std::int64_t{128} << 10;

// Passes of layers that a step captures. Micro-batches that share memory are two kinds: the first one overwrites
// gradients, the others add to them.
std::int64_t captured_passes(const StagePlan& plan) {
  const Timeline& timeline = plan.memory().timeline();
  const bool shares = timeline.micro_batches() < plan.options().schedule.micro_batches;
  std::int64_t passes = 0;
  timeline.for_each([&](const SliceKey& key) {
    const Timeline::Passes& of = timeline.of(key);
    passes += of.layers * (of.is_deferred() ? 3 : 2);
  });
  return std::min<std::int64_t>(passes * (shares ? 2 : 1), PassGraphs::kMost);
}

}  // namespace

DeviceMemory device_memory_of(const StagePlan& plan, DType compute_dtype, bool captures_graphs) {
  DeviceMemory memory{.scratch = gpu_scratch_bytes(plan.work(), compute_dtype)};
  const bool captures = captures_graphs && plan.options().trains() && plan.coordinates().tensor.size == 1;
  if (captures) memory.graphs = captured_passes(plan) * kBytesOfGraph;
  return memory;
}

}  // namespace teratron
