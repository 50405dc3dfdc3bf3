#include "runtime/backend_choice.h"

#include <algorithm>

namespace teratron {
namespace {

// Number of earlier ranks of the same host.
int rank_on_host(const Rank& rank) {
  const std::vector<std::string> hosts = rank.world.all_gather_host(rank.environment.host);
  return static_cast<int>(std::count(hosts.begin(), hosts.begin() + rank.world.rank(), rank.environment.host));
}

}  // namespace

std::unique_ptr<Backend> make_backend(const BackendSettings& settings, const Rank& rank) {
  const DType compute_dtype = settings.compute_dtype();
  switch (settings.kind) {
    case BackendKind::kReference: return make_reference_backend(compute_dtype);
    case BackendKind::kCuda: {
      const int device = rank_on_host(rank) % std::max(1, cuda_devices());
      return make_cuda_backend({.compute_dtype = compute_dtype,
                                .device = device,
                                .channels = rank.environment.kind != RankKind::kThreads && rank.world.size() > 1,
                                .tf32 = settings.tf32,
                                .gemm_timing = settings.gemm_timing,
                                .graphs = settings.cuda_graphs,
                                .cudnn_attention = settings.cudnn_attention,
                                .hopper_attention = settings.hopper_attention});
    }
    case BackendKind::kCpu: break;
  }
  return make_cpu_backend({.compute_dtype = compute_dtype, .guard_memory = settings.guard_memory});
}

}  // namespace teratron
