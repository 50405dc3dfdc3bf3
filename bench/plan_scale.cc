// What a plan costs: that a simulated step takes time in proportion to its actions, and the search of a 530B model (105
// layers, hidden size 20480, 128 heads) on 2240 devices (issue 13: in under a minute on two cores).
//   bench_plan_scale          the curve: medians of five, micro-batches doubled over 35 stages
//   bench_plan_scale search   the search
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/cluster_file.h"
#include "plan/search/layout_search.h"
#include "program.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

plan::PlanRequest request_of_530b() {
  plan::PlanRequest request{.cluster = find_cluster("dgx-a100", 2240), .vocab_size = 51200};
  TrainConfig& config = request.config;
  config.data_path = {"corpus"};
  config.train_iters = 1;
  config.model.config.num_layers = 105;
  config.model.config.hidden_size = 20480;
  config.model.config.num_attention_heads = 128;
  config.model.config.vocab_size = 51200;
  config.model.seq_length = 2048;
  config.batch.global_batch_size = 1920;
  config.backend.bf16 = true;
  return request;
}

struct Point {
  double actions = 0, milliseconds = 0;
};

Point measured(plan::PlanRequest request, std::int64_t micro_batches, std::string_view slices) {
  request.config.batch.global_batch_size = 8 * micro_batches;
  const TrainConfig config = plan::with_layout(
      request.config, {.tensor = 8,
                       .pipeline = 35,
                       .data = 8,
                       .schedule = slices.empty() ? pipeline::ScheduleKind::k1F1B : pipeline::ScheduleKind::kSeq1F1B,
                       .slicing = {std::string(slices)},
                       .sequence_parallel = true,
                       .distributed_optimizer = true});
  const simulation::PipelineWork work = plan::work_of(config, request.cluster, request.vocab_size);
  Point point;
  for (const auto& stage : work.schedule.actions) point.actions += static_cast<double>(stage.size());
  std::vector<double> times;
  for (int round = 0; round < 5; ++round) {
    const Clock::time_point start = Clock::now();
    simulation::simulate(work, request.cluster);
    times.push_back(1000 * seconds_since(start));
  }
  std::ranges::nth_element(times, times.begin() + 2);
  point.milliseconds = times[2];
  return point;
}

void print_curve() {
  const plan::PlanRequest request = request_of_530b();
  fmt::print("{:<10} {:>13} {:>9} {:>8} {:>14} {:>9}\n", "slices", "micro-batches", "actions", "ms", "us an action",
             "exponent");
  for (const std::string_view slices : {"", "uniform:4"}) {
    Point before;
    for (std::int64_t micro_batches = 30; micro_batches <= 960; micro_batches *= 2) {
      const Point point = measured(request, micro_batches, slices);
      const double exponent = before.actions == 0 ? NAN
                                                  : std::log(point.milliseconds / before.milliseconds) /
                                                        std::log(point.actions / before.actions);
      fmt::print("{:<10} {:>13} {:>9.0f} {:>8.1f} {:>14.2f} {:>9.2f}\n", slices.empty() ? "whole" : slices,
                 micro_batches, point.actions, point.milliseconds, 1000 * point.milliseconds / point.actions, exponent);
      before = point;
    }
  }
}

void print_search() {
  const Clock::time_point start = Clock::now();
  const plan::SearchResult result = plan::search_layouts(request_of_530b());
  fmt::print("{:.1f} s: {} layouts, {} too large, {} simulated, {} planned; best {} in {:.2f} s a step\n",
             seconds_since(start), result.layouts, result.too_large, result.simulated, result.planned,
             result.best.front().layout.text(), result.best.front().time.seconds);
}

int run(std::span<char*> arguments) {
  arguments.size() > 1 && std::string_view(arguments[1]) == "search" ? print_search() : print_curve();
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::run); }
