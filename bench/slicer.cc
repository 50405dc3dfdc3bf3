// How long the slicers take on costs shaped like a transformer's: a floor, a rate, and attention to the context. The
// targets (issue 3): 2048 tokens in steps of 8 under 50 ms, in steps of 1 under 2 s; jointly with 64 sequences under
// 2 s. Medians of five; the time that the table takes to fill stands apart.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <span>
#include <vector>

#include "program.h"
#include "slicing/slicer.h"

namespace teratron::slicing {
namespace {

constexpr std::int64_t kTokens = 2048;
constexpr int kStages = 48;

// Milliseconds of `sequences` at once: about the paper's setting 8.
double cost(double sequences, std::int64_t length, std::int64_t context) {
  const auto l = static_cast<double>(length), c = static_cast<double>(context);
  return 2 + sequences * (l / 100 + l * (c + l / 2) / 1e6);
}

CostTable table_of(double sequences, std::int64_t granularity, double share = 1) {
  return {kTokens, granularity,
          [=](std::int64_t length, std::int64_t context) { return share * cost(sequences, length, context); }};
}

double median_milliseconds(const std::function<void()>& work) {
  std::vector<double> times;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    work();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times[2];
}

void report_line(const char* what, std::int64_t granularity, double epsilon, double fill, double slice, int solves,
                 double time) {
  fmt::print("{:<22} {:>11} {:>11} {:>9.2f} {:>9.2f} {:>10} {:>12.3f}\n", what, granularity, epsilon, fill, slice,
             solves, time);
}

void one_sequence(std::int64_t granularity, double epsilon) {
  const double fill = median_milliseconds([&] { table_of(1, granularity); });
  const CostTable table = table_of(1, granularity);
  Slicing slicing;
  const double slice =
      median_milliseconds([&] { slicing = best_slicing(table, {.stages = kStages, .epsilon = epsilon}); });
  report_line("Algorithm 1", granularity, epsilon, fill, slice, slicing.solves, slicing.time);
}

void joint(int sequences, std::int64_t granularity, double epsilon) {
  std::vector<CostTable> tables;
  const double fill = median_milliseconds([&] {
    tables.clear();
    for (int b = 1; b <= sequences; ++b) tables.push_back(table_of(b, granularity));
  });
  JointSlicing slicing;
  const double slice =
      median_milliseconds([&] { slicing = best_joint_slicing(tables, {.stages = kStages, .epsilon = epsilon}); });
  report_line(fmt::format("joint, {} sequences", sequences).c_str(), granularity, epsilon, fill, slice, slicing.solves,
              slicing.time);
}

int run(std::span<char*>) {
  fmt::print("{:<22} {:>11} {:>11} {:>9} {:>9} {:>10} {:>12}\n", "slicer", "granularity", "epsilon, ms", "table, ms",
             "slice, ms", "programmes", "T, ms");
  for (const double epsilon : {0.1, 0.001}) {
    one_sequence(8, epsilon);
    one_sequence(1, epsilon);
    joint(64, 8, epsilon);
  }
  return 0;
}

}  // namespace
}  // namespace teratron::slicing

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::slicing::run); }
