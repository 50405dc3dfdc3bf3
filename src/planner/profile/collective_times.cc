#include "profile/collective_times.h"

#include <algorithm>

#include "base/host/monotonic_clock.h"
#include "base/median.h"

namespace teratron {
namespace {

constexpr int kRounds = 25;
constexpr double kShortestRound = 4e-3;  // seconds: far longer than a barrier

// The time of the slowest rank.
double seconds_of(Communicator& world, std::int64_t repeats, const std::function<void()>& action) {
  world.barrier();
  const double start = monotonic_seconds();
  for (std::int64_t repeat = 0; repeat < repeats; ++repeat) action();
  double seconds = monotonic_seconds() - start;
  world.all_reduce_host({&seconds, 1}, ReduceOp::kMax);
  return seconds;
}

}  // namespace

std::vector<double> collective_times(Communicator& world, std::span<const std::function<void()>> actions) {
  std::vector<std::int64_t> repeats;
  for (const std::function<void()>& action : actions) {
    seconds_of(world, 1, action);  // warm
    const double wanted = kShortestRound / seconds_of(world, 1, action);
    repeats.push_back(static_cast<std::int64_t>(std::clamp(wanted, 1.0, 1000.0)));
  }
  std::vector<std::vector<double>> seconds(actions.size());
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      seconds[i].push_back(seconds_of(world, repeats[i], actions[i]) / static_cast<double>(repeats[i]));
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& each : seconds) medians.push_back(median(std::move(each)));
  return medians;
}

double all_reduce_seconds(Communicator& world, std::int64_t bytes) {
  const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float));
  std::vector<float> values(static_cast<std::size_t>(count));  // zeros stay zeros
  const std::function<void()> sum = [&] { world.all_reduce(TensorRef(values.data(), DType::kF32, {count})); };
  return collective_times(world, {&sum, 1}).front();
}

}  // namespace teratron
