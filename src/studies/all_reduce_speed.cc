#include "studies/all_reduce_speed.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/host/monotonic_clock.h"
#include "base/host/threads.h"
#include "base/median.h"
#include "comm/mpi/mpi_job.h"

namespace teratron {
namespace {

constexpr std::int64_t kRounds = 25;
constexpr double kShortestRound = 4e-3;               // seconds: far longer than a barrier
constexpr std::int64_t kMeasuredCopyGrain = 1 << 16;  // bytes

// Of the slowest rank.
template <class Action>
double seconds_of(Communicator& world, std::int64_t repeats, const Action& action) {
  world.barrier();
  const double start = monotonic_seconds();
  for (std::int64_t repeat = 0; repeat < repeats; ++repeat) action();
  double seconds = monotonic_seconds() - start;
  world.all_reduce_host({&seconds, 1}, ReduceOp::kMax);
  return seconds;
}

}  // namespace

AllReduceSpeed measure_all_reduce(Communicator& world, Yardstick yardstick, std::int64_t bytes) {
  const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float));
  std::vector<float> values(static_cast<std::size_t>(count)), other(values.size());  // zeros stay zeros
  const TensorRef view(values.data(), DType::kF32, {count});
  const auto all_reduce = [&] { world.all_reduce(view); };
  const auto measure_yardstick = [&] {
    if (yardstick == Yardstick::kMpi) return mpi_all_reduce(other.data(), count);
    parallel_for(bytes, kMeasuredCopyGrain, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(reinterpret_cast<std::byte*>(other.data()) + begin,
                  reinterpret_cast<const std::byte*>(values.data()) + begin, static_cast<std::size_t>(end - begin));
    });
  };
  seconds_of(world, 1, measure_yardstick);  // both warm
  const double once = seconds_of(world, 1, all_reduce);
  const std::int64_t repeats = std::clamp<std::int64_t>(static_cast<std::int64_t>(kShortestRound / once), 1, 1000);
  std::vector<double> ours, theirs;
  for (std::int64_t round = 0; round < kRounds; ++round) {
    ours.push_back(seconds_of(world, repeats, all_reduce) / static_cast<double>(repeats));
    theirs.push_back(seconds_of(world, repeats, measure_yardstick) / static_cast<double>(repeats));
  }
  return {.bytes = bytes, .all_reduce = median(ours), .yardstick = median(theirs)};
}

}  // namespace teratron
