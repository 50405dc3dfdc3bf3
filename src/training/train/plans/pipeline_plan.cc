#include "train/plans/pipeline_plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/counted.h"
#include "base/error.h"
#include "base/round_up.h"
#include "data/batch_sampler.h"
#include "model/family.h"
#include "pipeline/deferral.h"
#include "pipeline/timing/simulate.h"
#include "pipeline/token_slices.h"
#include "pipeline/vocabulary_passes.h"
#include "slicing/auto_slices.h"
#include "slicing/cost/iteration_times.h"
#include "slicing/document_cuts.h"

namespace teratron {
namespace {

using pipeline::Costs;
using pipeline::PassTimes;
using pipeline::Schedule;
using pipeline::ScheduleKind;

// The rank that has most of the largest batch.
BatchSampler sampler_of_largest(const StepSettings& settings, const std::vector<std::int64_t>& sizes) {
  return {settings.largest_batch(), sizes, 0, settings.layout.data_parallel, settings.batch.samples_together};
}

int micro_batches_of(const StepSettings& settings, const std::vector<std::int64_t>& sizes) {
  return static_cast<int>(sampler_of_largest(settings, sizes).most_micro_batches());
}

// Unit of slice lengths: ranks that share rows out (sequence parallelism) have whole tokens each.
std::int64_t slice_unit(const StepSettings& settings) {
  return settings.layout.sequence_parallel ? settings.layout.tensor_parallel : 1;
}

// Moves every boundary to the nearest multiple of `unit`, which divides the sum of `lengths`.
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

// Lengths of slices by measured costs; empty: sequences run whole.
std::vector<std::int64_t> measured_slicing(const StepSettings& settings, const PipelinePlan& plan,
                                           const slicing::Profile& profile) {
  const pipeline::ScheduleSize size{.stages = static_cast<int>(settings.layout.pipeline_parallel),
                                    .micro_batches = micro_batches_of(settings, plan.micro_batch_sizes),
                                    .virtual_stages = static_cast<int>(settings.pipeline.virtual_stages)};
  std::vector<std::int64_t> lengths = rounded_to(
      slice_unit(settings), slicing::best_slice_lengths(profile, settings.model.seq_length, plan.kind, size));
  if (lengths.size() == 1) lengths.clear();
  return lengths;
}

std::vector<std::int64_t> given_slicing(const StepSettings& settings, const pipeline::TokenSlices& slices) {
  std::vector<std::int64_t> lengths = slices.lengths;
  if (slices.by_documents && slices.count > 1) {
    const slicing::DocumentSlices longest{
        .tokens = settings.model.seq_length, .unit = slice_unit(settings), .count = slices.count};
    lengths.assign(static_cast<std::size_t>(slices.count), longest.most_tokens());
  } else if (lengths.empty()) {
    lengths = pipeline::even_slices(settings.model.seq_length / slice_unit(settings), slices.count);
    for (std::int64_t& length : lengths) length *= slice_unit(settings);
  }
  if (lengths.size() == 1) lengths.clear();
  return lengths;
}

std::vector<pipeline::MicroBatchCut> cuts_of(const StepSettings& settings, const PipelinePlan& plan,
                                             const slicing::Profile* profile) {
  if (settings.pipeline.token_slices.empty()) return {};
  pipeline::TokenSlices slices = pipeline::parse_token_slices("--token-slices", settings.pipeline.token_slices);
  if (!slices.cuts.empty()) return std::move(slices.cuts);
  check(!slices.automatic || profile != nullptr, "slices are chosen by measured costs");
  return cut_alike(sampler_of_largest(settings, plan.micro_batch_sizes).largest_micro_batch(),
                   slices.automatic ? measured_slicing(settings, plan, *profile) : given_slicing(settings, slices));
}

// A schedule of `parts` parts of the micro-batches, after each of which the pipeline is empty.
Schedule schedule_in_parts(ScheduleKind kind, const pipeline::ScheduleSize& size, int parts) {
  Schedule all;
  int first = 0;
  for (const std::int64_t count : pipeline::even_slices(size.micro_batches, std::min(parts, size.micro_batches))) {
    pipeline::ScheduleSize part = size;
    part.micro_batches = static_cast<int>(count);
    std::vector<int> slices;
    for (int m = 0; m < part.micro_batches; ++m) slices.push_back(size.slices_of(first + m));
    part.set_slices(std::move(slices));
    const Schedule next = pipeline::make_schedule(kind, part);
    all = first == 0 ? next : pipeline::one_after_the_other(all, next);
    first += part.micro_batches;
  }
  return all;
}

// Interleaved schedules exist for multiples of the stages; the micro-batches that are too many are taken out.
Schedule schedule_of(const StepSettings& settings, const PipelinePlan& plan) {
  const int micro_batches = micro_batches_of(settings, plan.micro_batch_sizes),
            stages = static_cast<int>(settings.layout.pipeline_parallel);
  const int unit = pipeline::traits_of(plan.kind).fills_groups ? stages : 1;
  pipeline::ScheduleSize size{.stages = stages,
                              .micro_batches = round_up(micro_batches, unit),
                              .virtual_stages = static_cast<int>(settings.pipeline.virtual_stages)};
  std::vector<int> slices;
  for (int m = 0; m < size.micro_batches; ++m) {
    slices.push_back(std::max(1, static_cast<int>(plan.slices_of(m).size())));
  }
  size.set_slices(std::move(slices));
  size.vocabulary_parallel = settings.pipeline.vocabulary_parallel;
  if (settings.pipeline.flushes > 1)
    return schedule_in_parts(plan.kind, size, static_cast<int>(settings.pipeline.flushes));
  const Schedule whole = pipeline::make_schedule(plan.kind, size);
  return pipeline::first_micro_batches(whole, micro_batches);
}

// Measured costs, or costs in proportion to the cells' layers.
Costs costs_of(const PipelinePlan& plan, std::int64_t tokens, bool vocabulary_parallel,
               const slicing::Profile* profile) {
  if (profile != nullptr) {
    const std::vector<pipeline::MicroBatchCut> whole = cut_alike(plan.micro_batch_sizes.front(), {tokens});
    return slicing::paced_costs(*profile, plan.schedule, plan.cuts.empty() ? whole : plan.cuts,
                                {.layers = plan.cell_layers, .vocabulary_parallel = vocabulary_parallel});
  }
  const std::vector<std::int64_t>& cell_layers = plan.cell_layers;
  Costs costs = pipeline::costs_of_each(plan.schedule, plan.cuts.size() > 1, [&](int m) {
    if (plan.cuts.empty()) return pipeline::even_times(1, {}, /*forward=*/1, /*backward=*/2);
    const pipeline::MicroBatchCut& cut = pipeline::cut_of(plan.cuts, m);
    const auto share = static_cast<double>(cut.sequences) / static_cast<double>(plan.cuts.front().sequences);
    return pipeline::even_times(plan.schedule.slices_of(m), cut.slice_tokens, share, 2 * share);
  });
  const auto cells = static_cast<double>(cell_layers.size());
  const auto layers = static_cast<double>(std::accumulate(cell_layers.begin(), cell_layers.end(), std::int64_t{0}));
  for (std::size_t cell = 0; cell < cell_layers.size(); ++cell) {
    const double share = static_cast<double>(cell_layers[cell]) * cells / layers;
    for (PassTimes& times : costs.passes[cell]) {
      for (double* time : {&times.forward, &times.backward, &times.backward_input, &times.backward_weight}) {
        *time *= share;
      }
    }
  }
  return costs;
}

// Adds the cost of a stage's part of a head, forward and backward, in proportion to the operations of the stage's
// forward passes.
void add_head_costs(const StepSettings& settings, const Schedule& schedule, Costs& costs) {
  const ModelConfig& model = settings.model.config;
  const auto tokens = static_cast<double>(settings.model.seq_length);
  const double head = model.family().head_operations(model, tokens);
  const double layers = model.training_flops_per_token(settings.model.seq_length) / 3 - head;
  for (std::vector<PassTimes>& cell : costs.passes) {
    for (PassTimes& times : cell) times.head = 3 * head / layers * times.forward * schedule.virtual_stages;
  }
}

std::string cells_text(const Schedule& schedule) {
  if (schedule.virtual_stages == 1) return "";
  return fmt::format(" ({} cells each, {})", schedule.virtual_stages,
                     schedule.placement == pipeline::Placement::kFolded ? "in a V" : "in turns");
}

}  // namespace

const std::vector<std::int64_t>& PipelinePlan::slices_of(int micro_batch) const {
  static const std::vector<std::int64_t> whole;
  return cuts.empty() ? whole : pipeline::cut_of(cuts, micro_batch).slice_tokens;
}

PipelinePlan plan_pipeline(const StepSettings& settings, const slicing::Profile* profile) {
  PipelinePlan plan{.kind = schedule_kind(settings.pipeline),
                    .cell_layers = cell_layers(settings),
                    .micro_batch_sizes = settings.micro_batch_sizes(),
                    .samples_together = settings.batch.samples_together,
                    .cuts_by_documents = settings.pipeline.cuts_by_documents(),
                    .is_measured = profile != nullptr};
  plan.cuts = cuts_of(settings, plan, profile);
  plan.schedule = schedule_of(settings, plan);
  plan.costs = costs_of(plan, settings.model.seq_length, settings.pipeline.vocabulary_parallel, profile);
  if (settings.pipeline.defer_weight_gradients) {
    plan.schedule =
        pipeline::defer_weight_gradients(plan.schedule, plan.costs, pipeline::deferral_bound(plan.kind, plan.schedule));
  }
  if (settings.pipeline.vocabulary_parallel) {
    if (profile == nullptr) add_head_costs(settings, plan.schedule, plan.costs);
    plan.schedule = pipeline::with_vocabulary_passes(plan.schedule, plan.costs);
  }
  return plan;
}

std::string text_of(const PipelinePlan& plan) {
  const Schedule& schedule = plan.schedule;
  if (schedule.stages == 1 && schedule.slices == 1 && plan.cuts.size() < 2) return "";
  const bool deferred = std::ranges::any_of(schedule.actions.front(), [](const pipeline::Action& action) {
    return action.pass == pipeline::Pass::kBackwardWeight;
  });
  std::string text = fmt::format("pipeline {}{}{}: {} of {} layer{}{}, {}", pipeline::name_of(plan.kind),
                                 deferred ? " with deferred weight gradients" : "",
                                 schedule.vocabulary_parallel ? " with the vocabulary shared out" : "",
                                 counted(schedule.stages, "stage"), fmt::join(plan.cell_layers, ","),
                                 plan.cell_layers == std::vector<std::int64_t>{1} ? "" : "s", cells_text(schedule),
                                 counted(schedule.micro_batches, "micro-batch", "micro-batches"));
  if (plan.cuts.size() == 1) {
    const std::vector<std::int64_t>& lengths = plan.cuts.front().slice_tokens;
    text += plan.cuts_by_documents
                ? fmt::format(" in {} slices by documents, of {} tokens at most", lengths.size(), lengths.front())
                : fmt::format(" in slices of {} token{}", fmt::join(lengths, ","),
                              lengths == std::vector<std::int64_t>{1} ? "" : "s");
  } else if (!plan.cuts.empty()) {
    text += fmt::format(" cut into {}", pipeline::text_of(plan.cuts));
  }
  return text + fmt::format("; bubbles are {:.1f} % of the stages' time {}",
                            100 * pipeline::simulate(schedule, plan.costs).bubble_share(),
                            plan.is_measured ? "by the profile" : "if tokens cost alike");
}

}  // namespace teratron
