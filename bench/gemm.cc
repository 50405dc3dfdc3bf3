// The rate of oneDNN's matrix product, in fp32 or bf16, which bench/train_cpu compares training steps with: at the best
// of a model's shapes and a large square.
//   bench_gemm THREADS TOKENS HIDDEN [bf16]
// For each line "gemm SECONDS" on standard input it multiplies for so long and prints {"gflops": ..}; "quit" ends it.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/host/threads.h"
#include "onednn_product.h"
#include "program.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// GFLOP/s of doing it again and again for so long: as a step does, it meets whatever else the machine is doing.
double rate_of(OneDnnProduct& product, double seconds) {
  const Clock::time_point start = Clock::now();
  double done = 0;
  do {
    product.run();
    done += 1e-9 * product.flops();
  } while (seconds_since(start) < seconds);
  return done / seconds_since(start);
}

// The best of the model's shapes and a large square, by a short look at each.
std::unique_ptr<OneDnnProduct> best_product(std::int64_t tokens, std::int64_t h, DType dtype) {
  std::unique_ptr<OneDnnProduct> best;
  double best_rate = 0;
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {2048, 2048, 2048}, {tokens, 3 * h, h}, {tokens, 4 * h, h}, {tokens, h, 4 * h}}) {
    auto product = std::make_unique<OneDnnProduct>(m, n, k, dtype);
    if (const double rate = rate_of(*product, 0.3); rate > best_rate) {
      best_rate = rate;
      best = std::move(product);
    }
  }
  return best;
}

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

int run(std::span<char*> arguments) {
  const bool bf16 = arguments.size() == 5 && std::string_view(arguments[4]) == "bf16";
  if (arguments.size() != 4 && !bf16) throw_user_error("usage: bench_gemm THREADS TOKENS HIDDEN [bf16]");
  set_thread_count(std::atoi(arguments[1]));
  const auto product =
      best_product(std::atoll(arguments[2]), std::atoll(arguments[3]), bf16 ? DType::kBF16 : DType::kF32);
  say(fmt::format("{{\"ready\": true, \"instructions\": \"{}\"}}", onednn_instructions()));
  for (std::string word; std::cin >> word && word != "quit";) {
    double seconds = 0;
    if (word != "gemm" || !(std::cin >> seconds)) {
      throw_user_error("expected \"gemm SECONDS\" or \"quit\", not '{}'", word);
    }
    say(fmt::format("{{\"gflops\": {}}}", rate_of(*product, seconds)));
  }
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::run); }
