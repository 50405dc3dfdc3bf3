#include "train/pipeline_plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/round_up.h"
#include "data/batch_sampler.h"
#include "pipeline/deferral.h"
#include "pipeline/simulate.h"
#include "pipeline/token_slices.h"
#include "slicing/slice_times.h"

namespace teratron {
namespace {

using pipeline::Costs;
using pipeline::PassTimes;
using pipeline::Schedule;
using pipeline::ScheduleKind;

int micro_batches_of(const TrainConfig& config) {
  const BatchSampler largest(config.largest_batch(), config.micro_batch_size, 0, config.data_parallel);
  return static_cast<int>(largest.most_micro_batches());
}

// A rank's rows of the residual stream are whole tokens.
std::int64_t slice_unit(const TrainConfig& config) { return config.sequence_parallel ? config.tensor_parallel : 1; }

// With every boundary at the nearest multiple of `unit`, which divides their sum.
std::vector<std::int64_t> rounded_to(std::int64_t unit, const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> rounded;
  std::int64_t end = 0, rounded_end = 0;
  for (const std::int64_t length : lengths) {
    end += length;
    const std::int64_t next = (end + unit / 2) / unit * unit;
    if (next > rounded_end) rounded.push_back(next - rounded_end);
    rounded_end = next;
  }
  return rounded;
}

std::vector<std::int64_t> slice_tokens(const TrainConfig& config, ScheduleKind kind, const slicing::Profile* profile) {
  if (config.token_slices.empty()) return {};
  const pipeline::TokenSlices slices = pipeline::parse_token_slices("--token-slices", config.token_slices);
  const std::int64_t unit = slice_unit(config);
  std::vector<std::int64_t> lengths = slices.lengths;
  if (slices.automatic) {
    check(profile != nullptr, "slices are chosen by measured costs");
    lengths = rounded_to(
        unit, slicing::best_slice_lengths(*profile, config.seq_length, kind, static_cast<int>(config.pipeline_parallel),
                                          micro_batches_of(config)));
  } else if (lengths.empty()) {
    lengths = pipeline::even_slices(config.seq_length / unit, slices.count);
    for (std::int64_t& length : lengths) length *= unit;
  }
  if (lengths.size() == 1) lengths.clear();
  return lengths;
}

// Interleaved schedules exist for multiples of the stages; what one has too many is left out of it.
Schedule schedule_of(const TrainConfig& config, const PipelinePlan& plan) {
  const int micro_batches = micro_batches_of(config), stages = static_cast<int>(config.pipeline_parallel);
  const int unit = plan.kind == ScheduleKind::kInterleaved ? stages : 1;
  const Schedule whole =
      pipeline::make_schedule(plan.kind, {.stages = stages,
                                          .micro_batches = round_up(micro_batches, unit),
                                          .slices = std::max(1, static_cast<int>(plan.slice_tokens.size())),
                                          .virtual_stages = static_cast<int>(config.virtual_stages)});
  return pipeline::first_micro_batches(whole, micro_batches);
}

// As measured, or what the cells' layers do.
Costs costs_of(const PipelinePlan& plan, std::int64_t tokens, const slicing::Profile* profile) {
  if (profile != nullptr) {
    const std::vector<std::int64_t> whole = {tokens};
    return slicing::slice_costs(*profile, plan.schedule, plan.slice_tokens.empty() ? whole : plan.slice_tokens);
  }
  const std::vector<PassTimes> slices =
      pipeline::even_times(plan.schedule.slices, plan.slice_tokens, /*forward=*/1, /*backward=*/2);
  Costs costs = pipeline::sliced_costs(plan.schedule, slices);
  const auto cells = static_cast<double>(plan.cell_layers.size());
  const auto layers =
      static_cast<double>(std::accumulate(plan.cell_layers.begin(), plan.cell_layers.end(), std::int64_t{0}));
  for (std::size_t cell = 0; cell < plan.cell_layers.size(); ++cell) {
    const double share = static_cast<double>(plan.cell_layers[cell]) * cells / layers;
    for (PassTimes& times : costs.passes[cell]) {
      for (double* time : {&times.forward, &times.backward, &times.backward_input, &times.backward_weight}) {
        *time *= share;
      }
    }
  }
  return costs;
}

}  // namespace

PipelinePlan plan_pipeline(const TrainConfig& config, const slicing::Profile* profile) {
  PipelinePlan plan{.kind = schedule_kind(config), .cell_layers = cell_layers(config)};
  plan.slice_tokens = slice_tokens(config, plan.kind, profile);
  plan.is_measured = profile != nullptr;
  plan.schedule = schedule_of(config, plan);
  plan.costs = costs_of(plan, config.seq_length, profile);
  if (config.defer_weight_gradients) {
    plan.schedule =
        pipeline::defer_weight_gradients(plan.schedule, plan.costs, pipeline::most_live_slices(plan.schedule));
  }
  return plan;
}

std::string text_of(const PipelinePlan& plan) {
  const Schedule& schedule = plan.schedule;
  if (schedule.stages == 1 && schedule.slices == 1) return "";
  const bool deferred = std::ranges::any_of(schedule.actions.front(), [](const pipeline::Action& action) {
    return action.pass == pipeline::Pass::kBackwardWeight;
  });
  const bool interleaved = schedule.virtual_stages > 1;
  std::string text = fmt::format("pipeline {}{}: {} stage{} of {} layers{}, {} micro-batch{}",
                                 pipeline::name_of(plan.kind), deferred ? " with deferred weight gradients" : "",
                                 schedule.stages, schedule.stages > 1 ? "s" : "", fmt::join(plan.cell_layers, ","),
                                 interleaved ? fmt::format(" ({} cells each, in turns)", schedule.virtual_stages) : "",
                                 schedule.micro_batches, schedule.micro_batches > 1 ? "es" : "");
  if (schedule.slices > 1) text += fmt::format(" in slices of {} tokens", fmt::join(plan.slice_tokens, ","));
  return text + fmt::format("; bubbles are {:.1f} % of the stages' time {}",
                            100 * pipeline::simulate(schedule, plan.costs).bubble_share(),
                            plan.is_measured ? "by the profile" : "if tokens cost alike");
}

}  // namespace teratron
