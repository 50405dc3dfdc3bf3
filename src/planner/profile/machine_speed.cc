#include "profile/machine_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/cache_folder.h"
#include "base/files/checksum.h"
#include "base/files/file.h"
#include "base/host/monotonic_clock.h"
#include "base/host/threads.h"
#include "base/philox.h"
#include "profile/processor.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr double kSeconds = 0.1;
// A product that takes this long is large enough to reach the processor's speed.
constexpr double kLongProduct = 2e-3;
constexpr std::int64_t kSmallest = 256, kLargest = 8192;

// Products of two square matrices of this size.
class SquareProduct {
 public:
  SquareProduct(Backend& backend, std::int64_t size)
      : backend_(backend),
        size_(size),
        y_(backend, backend.compute_dtype(), {size, size}),
        x_(backend, backend.compute_dtype(), {size, size}),
        weight_(backend, backend.compute_dtype(), {size, size}) {
    // Multiplying zeros takes less power, and GPUs then go faster than they ever do in training.
    backend.fill_normal(x_, RandomStream{.seed = 1}, 0, 1.0);
    backend.fill_normal(weight_, RandomStream{.seed = 2}, 0, 1.0);
  }

  double seconds() {
    backend_.wait();
    const double start = monotonic_seconds();
    backend_.linear_forward({.y = y_, .x = x_, .weight = weight_});
    backend_.wait();
    return monotonic_seconds() - start;
  }
  double operations() const { return 2 * std::pow(static_cast<double>(size_), 3); }

 private:
  Backend& backend_;
  std::int64_t size_;
  Tensor y_, x_, weight_;
};

// This rank's operations per second.
double best_speed(Backend& backend) {
  const double end = monotonic_seconds() + kSeconds;
  double best = 0;
  for (std::int64_t size = kSmallest;; size *= 2) {
    SquareProduct product(backend, size);
    product.seconds();  // wakes threads up
    const double seconds = product.seconds();
    best = std::max(best, product.operations() / seconds);
    if (seconds < kLongProduct && size < kLargest) continue;
    while (monotonic_seconds() < end) best = std::max(best, product.operations() / product.seconds());
    return best;
  }
}

std::string key_of(const Backend& backend, const Communicator& world) {
  return fmt::format("{}; back end {} {}; {}; {} threads; {} ranks", processor_name(backend), backend.name(),
                     backend.settings(), name_of(backend.compute_dtype()), thread_count(), world.size());
}

// Speed in a file of the cache; 0 if the file is missing, cannot be read, or has another key.
double stored(const fs::path& file, const std::string& key) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return 0;
  std::string text;
  try {
    text = read_file(file);
  } catch (const UserError&) {
    return 0;
  }
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("key", nlohmann::json()) != key) return 0;
  const auto flops = json.find("flops_per_second");
  return flops != json.end() && flops->is_number() ? flops->get<double>() : 0;
}

void store(const fs::path& file, const std::string& key, double flops) {
  try {
    make_folders(file.parent_path());
    write_file_atomically(file, nlohmann::ordered_json{{"key", key}, {"flops_per_second", flops}}.dump(2) + "\n");
  } catch (const std::runtime_error&) {  // the next run measures again
  }
}

}  // namespace

double measured_peak_flops(Backend& backend, Communicator& world) {
  world.barrier();
  std::array<double, 1> sum = {best_speed(backend)};
  world.all_reduce_host(sum);
  return sum.front();
}

double peak_flops(Backend& backend, Communicator& world) {
  const fs::path cache = user_cache_folder();
  const std::string key = key_of(backend, world);
  const fs::path file = cache.empty() ? fs::path() : cache / "peaks" / (checksum_of(key) + ".json");
  const bool is_first = world.rank() == 0;
  const double measured = measured_peak_flops(backend, world);
  // The first rank's cache holds for all.
  const double before = world.all_gather_host(is_first ? stored(file, key) : 0.0).front();
  if (is_first && !file.empty() && measured > before) store(file, key, measured);
  return std::max(measured, before);
}

}  // namespace teratron
