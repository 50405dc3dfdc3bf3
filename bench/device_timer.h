// Time of operations on a device, and the least time that it needs for them: FLOPs at the rate of a large square
// product, bytes at the rate of a large copy.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/host/monotonic_clock.h"
#include "base/median.h"
#include "ops/backend.h"

namespace teratron {

inline constexpr int kRounds = 5;
inline constexpr double kRoundSeconds = 0.02;       // of calls, at least one
inline constexpr double kResolvedSeconds = 0.5e-6;  // what a device's clock tells apart

// Amounts that one call moves and computes. `bytes`: of every view once as it is read, and once as it is written.
struct Work {
  std::string name;
  double flops, bytes;
  std::function<void()> call;
};

class Timer {
 public:
  explicit Timer(Backend& backend) : backend_(backend) {}

  // Median seconds of one call; none where that is less than the device's clock resolves.
  std::optional<double> seconds(const std::function<void()>& call) const {
    call();  // chooses algorithms
    const double once = std::max(of_calls(1, call).host, 1e-6);
    const int count = static_cast<int>(std::clamp(std::ceil(kRoundSeconds / once), 1.0, 200.0));
    std::vector<double> rounds;
    for (int i = 0; i < kRounds; ++i) rounds.push_back(of_calls(count, call).device);
    const double round = median(rounds);
    return round < kResolvedSeconds ? std::nullopt : std::optional(round / count);
  }

 private:
  struct Seconds {
    double device, host;  // the latter with the wait
  };

  Seconds of_calls(int count, const std::function<void()>& call) const {
    backend_.wait();
    const double begin = monotonic_seconds();
    const auto start = backend_.timestamp();
    for (int i = 0; i < count; ++i) call();
    const auto end = backend_.timestamp();
    backend_.wait();
    return {end->seconds() - start->seconds(), monotonic_seconds() - begin};
  }

  Backend& backend_;
};

// Rates that the device reaches at most; none where the clock did not resolve it.
struct Limits {
  std::optional<double> flops, bytes;  // a second

  // The least seconds that a device with these limits needs.
  std::optional<double> seconds_of(const Work& work) const {
    if (!bytes || (work.flops > 0 && !flops)) return std::nullopt;
    return std::max(work.flops > 0 ? work.flops / *flops : 0, work.bytes / *bytes);
  }
};

inline std::optional<double> rate(double amount, const std::optional<double>& seconds) {
  return seconds ? std::optional(amount / *seconds) : std::nullopt;
}

inline Limits limits_of(Backend& backend, const Timer& timer, bool tiny) {
  const std::int64_t size = tiny ? 64 : backend.is_host_memory() ? 2048 : 8192;
  const DType compute = backend.compute_dtype();
  const Tensor a(backend, compute, {size, size}), b(backend, compute, {size, size}), c(backend, compute, {size, size});
  for (const TensorRef& view : {a.ref(), b.ref()}) backend.fill_normal(view, RandomStream(), 0, 1);
  const double edge = static_cast<double>(size);
  const auto product = timer.seconds([&] { backend.linear_forward({.y = c, .x = a, .weight = b}); });
  const std::int64_t count = tiny ? 1 << 12 : std::int64_t{1} << 28;
  const Tensor from(backend, DType::kF32, {count}), to(backend, DType::kF32, {count});
  backend.fill_zero(from);
  const auto copy = timer.seconds([&] { backend.copy(to, from); });
  return {rate(2 * edge * edge * edge, product), rate(8.0 * static_cast<double>(count), copy)};
}

}  // namespace teratron
