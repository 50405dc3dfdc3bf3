// The rate of oneDNN's matrix product in fp32, which bench/train_cpu compares training steps with: at the best of a
// model's shapes and a large square.
//   bench_gemm THREADS TOKENS HIDDEN
// For each line "gemm SECONDS" on standard input it multiplies for so long and prints {"gflops": ..}; "quit" ends it.
#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "base/threads.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// out[m,n] = a[m,k] b[n,k]^T by oneDNN.
class Product {
 public:
  Product(std::int64_t m, std::int64_t n, std::int64_t k)
      : m_(m),
        n_(n),
        k_(k),
        a_(static_cast<std::size_t>(m * k), 0.5F),
        b_(static_cast<std::size_t>(n * k), 0.25F),
        out_(static_cast<std::size_t>(m * n)) {}

  // GFLOP/s of doing it again and again for so long: as a step does, it meets whatever else the machine is doing.
  double rate(double seconds) {
    const Clock::time_point start = Clock::now();
    double done = 0;
    do {
      dnnl_sgemm('N', 'T', m_, n_, k_, 1, a_.data(), k_, b_.data(), k_, 0, out_.data(), n_);
      done += 2e-9 * static_cast<double>(m_) * static_cast<double>(n_) * static_cast<double>(k_);
    } while (seconds_since(start) < seconds);
    return done / seconds_since(start);
  }

 private:
  std::int64_t m_, n_, k_;
  std::vector<float> a_, b_, out_;
};

// The best of the model's shapes and a large square, by a short look at each.
Product best_product(std::int64_t tokens, std::int64_t h) {
  std::vector<Product> all = {{2048, 2048, 2048}, {tokens, 3 * h, h}, {tokens, 4 * h, h}, {tokens, h, 4 * h}};
  std::vector<double> rates;
  for (Product& product : all) rates.push_back(product.rate(0.3));
  return all[static_cast<std::size_t>(std::ranges::max_element(rates) - rates.begin())];
}

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) {
  using namespace teratron;
  if (count != 4) {
    fmt::print(stderr, "usage: bench_gemm THREADS TOKENS HIDDEN\n");
    return 2;
  }
  set_thread_count(std::atoi(arguments[1]));
  Product product = best_product(std::atoll(arguments[2]), std::atoll(arguments[3]));
  say("{\"ready\": true}");
  for (std::string word; std::cin >> word && word != "quit";) {
    double seconds = 0;
    if (word != "gemm" || !(std::cin >> seconds)) {
      fmt::print(stderr, "error: expected \"gemm SECONDS\" or \"quit\", not '{}'\n", word);
      return 2;
    }
    say(fmt::format("{{\"gflops\": {}}}", product.rate(seconds)));
  }
  return 0;
}
