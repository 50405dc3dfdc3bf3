#include "profile/machine_speed.h"

#include <algorithm>
#include <array>

#include "base/host/monotonic_clock.h"
#include "base/host/resources.h"
#include "profile/peak_speed.h"
#include "profile/processor_name.h"

namespace teratron {
namespace {

constexpr double kCopySeconds = 0.02;  // for each size

// Bytes a second of this rank, read and written.
double copy_speed(Backend& backend, std::int64_t bytes) {
  const std::int64_t count = bytes / 4;
  const Tensor from(backend, DType::kF32, {count}), to(backend, DType::kF32, {count});
  backend.fill_zero(from);
  backend.copy(to, from);
  backend.wait();
  double best = 0;
  for (const double end = monotonic_seconds() + kCopySeconds; monotonic_seconds() < end;) {
    const double start = monotonic_seconds();
    for (int i = 0; i < 4; ++i) backend.copy(to, from);
    backend.wait();
    best = std::max(best, 4 * 2 * static_cast<double>(bytes) / (monotonic_seconds() - start));
  }
  return best;
}

}  // namespace

MachineSpeed measure_machine(Backend& backend, Communicator& world) {
  const auto ranks = static_cast<double>(world.size());
  MachineSpeed speed{.processor = processor_name(backend)};
  speed.flops = measured_peak_flops(backend, world) / ranks;
  world.barrier();
  for (const std::int64_t bytes : {std::int64_t{1} << 18, std::int64_t{1} << 20, std::int64_t{1} << 25}) {
    speed.memory_bandwidth = std::max(speed.memory_bandwidth, copy_speed(backend, bytes));
  }
  const auto memory = available_host_memory();
  std::array<double, 2> sums = {speed.memory_bandwidth, memory ? static_cast<double>(*memory) / ranks : 0};
  world.all_reduce_host(sums);
  speed.memory_bandwidth = sums[0] / ranks;
  speed.memory = sums[1] / ranks;
  return speed;
}

}  // namespace teratron
