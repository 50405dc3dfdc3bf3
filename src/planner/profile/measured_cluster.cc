#include "profile/measured_cluster.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/host/monotonic_clock.h"
#include "base/host/resources.h"
#include "cluster/cluster_file.h"
#include "profile/collective_times.h"
#include "profile/machine_speed.h"
#include "profile/processor.h"

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

// A link with a ring's latency, from a small sum, and its bandwidth, from a large one (collective_time.h).
LinkLevel measured_link(Communicator& world) {
  constexpr std::int64_t kSmall = 4 << 10, kLarge = 8 << 20;
  const double n = world.size(), steps = 2 * (n - 1);
  const double small = all_reduce_seconds(world, kSmall);
  const double large = all_reduce_seconds(world, kLarge);
  return {.name = "ranks of this machine",
          .devices = world.size(),
          .bandwidth = steps / n * static_cast<double>(kLarge - kSmall) / std::max(large - small, 1e-9),
          .latency = small / steps,
          .from = "measured by teratron profile: sums of 4 KB and 8 MB"};
}

// Free bytes of a rank: its part of the host's or the device's memory that it shares with others; 0: not known.
double memory_of_rank(Backend& backend, Communicator& world) {
  const std::vector<std::string> memories = world.all_gather_host(backend.memory_name());
  const auto sharing = std::ranges::count(memories, memories[static_cast<std::size_t>(world.rank())]);
  const std::int64_t left = backend.is_host_memory() ? available_host_memory().value_or(0) : backend.bytes_left();
  return static_cast<double>(left) / static_cast<double>(sharing);
}

}  // namespace

Cluster measured_cluster(Backend& backend, Communicator& world) {
  const auto ranks = static_cast<double>(world.size());
  const double flops = measured_peak_flops(backend, world) / ranks;
  world.barrier();
  double bandwidth = 0;
  for (const std::int64_t bytes : {std::int64_t{1} << 18, std::int64_t{1} << 20, std::int64_t{1} << 25}) {
    bandwidth = std::max(bandwidth, copy_speed(backend, bytes));
  }
  std::array<double, 2> sums = {bandwidth, memory_of_rank(backend, world)};
  world.all_reduce_host(sums);
  Cluster cluster{.name = std::string(kThisMachine), .devices = world.size(), .links = {}, .constants = {}};
  cluster.device = {.name = processor_name(backend),
                    .memory = sums[1] / ranks,
                    .peak_16 = flops,
                    .peak_32 = flops,
                    .memory_bandwidth = sums[0] / ranks,
                    .backend = backend.is_host_memory() ? "cpu" : "cuda"};
  if (world.size() > 1) cluster.links = {measured_link(world)};
  return cluster;
}

}  // namespace teratron
