#include "cli/backend_choice.h"

#include <algorithm>

namespace teratron {
namespace {

// How many ranks of the same host come before this one.
int place_on_host(const Rank& rank) {
  const std::vector<std::string> hosts = rank.world.all_gather_host(rank.environment.host);
  return static_cast<int>(std::count(hosts.begin(), hosts.begin() + rank.world.rank(), rank.environment.host));
}

}  // namespace

void add_backend_fields(FieldList& list, BackendChoice& choice) {
  add_backend_field(list, choice.kind);
  list.add("guard-memory", &choice.guard_memory, "", "keep tensors unreadable outside of operations (a test)").role =
      FieldRole::kHiddenFlag;
}

std::unique_ptr<Backend> make_backend(const BackendChoice& choice, DType compute_dtype, const Rank& rank) {
  switch (choice.kind) {
    case BackendKind::kReference: return make_reference_backend(compute_dtype);
    case BackendKind::kCuda: {
      const int device = place_on_host(rank) % std::max(1, cuda_devices());
      return make_cuda_backend(
          {.compute_dtype = compute_dtype, .device = device, .cudnn_attention = choice.cudnn_attention});
    }
    case BackendKind::kCpu: break;
  }
  return make_cpu_backend({.compute_dtype = compute_dtype, .guard_memory = choice.guard_memory});
}

}  // namespace teratron
