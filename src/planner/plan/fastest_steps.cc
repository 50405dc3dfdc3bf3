#include "plan/fastest_steps.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/host/threads.h"
#include "plan/costs/step_time.h"
#include "plan/search/layout_memory.h"
#include "plan/train_command.h"
#include "simulation/pipeline_run.h"

namespace teratron::plan {
namespace {

void set_memory(const PlanRequest& request, const TrainConfig& config, const std::vector<std::int64_t>& of_stages,
                FastestStep& step) {
  const auto fullest = std::ranges::max_element(of_stages);
  const RankMemory memory = memory_of_stage(config, request.context(), static_cast<int>(fullest - of_stages.begin()));
  step.memory = *fullest;
  step.kinds.assign(memory.of_kind.begin(), memory.of_kind.end());
  step.kinds.push_back(memory.needed() - std::accumulate(step.kinds.begin(), step.kinds.end(), std::int64_t{0}));
}

FastestStep step_that_fits(const PlanRequest& request, const PlannedLayout& best) {
  const simulation::PipelineWork work = work_of(best.config, request.cluster, request.vocab_size);
  FastestStep step{.fits = true,
                   .layout = best.layout.text(),
                   .command = train_command(best.config, request.cluster),
                   .kinds = {},
                   .time = best.time,
                   .parts = best.parts,
                   .columns = columns_of(simulation::simulate(work, request.cluster))};
  set_memory(request, best.config, best.memory, step);
  return step;
}

FastestStep step_that_needs_least(const PlanRequest& request, const SearchResult& result) {
  FastestStep step;
  if (!result.smallest) return step;
  const TrainConfig config = with_layout(request.config, *result.smallest);
  step.layout = result.smallest->text();
  set_memory(request, config, memory_of_stages(config, request.context()), step);
  return step;
}

FastestStep fastest_step(const PlanRequest& request, KnownLayouts& known) {
  try {
    const SearchResult result = search_layouts(request, 0, known);
    return result.best.empty() ? step_that_needs_least(request, result) : step_that_fits(request, result.best.front());
  } catch (const NoLayoutError&) {
    return {};
  }
}

// Steps of one model, number of devices and batch, on clusters of one kind of devices: their searches share layouts.
using StepGroup = std::vector<ComparedStep*>;

std::vector<StepGroup> grouped(std::span<ComparedStep> steps) {
  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t, BackendKind, DType, int>, StepGroup> groups;
  for (ComparedStep& step : steps) {
    const TrainConfig& config = step.request.config;
    const MemoryPlanContext context = step.request.context();
    groups[{step.model, step.request.cluster.devices, config.batch.global_batch_size, config.backend.kind,
            context.compute_dtype, context.threads}]
        .push_back(&step);
  }
  std::vector<StepGroup> all;
  for (auto& [kind, group] : groups) all.push_back(std::move(group));
  return all;
}

}  // namespace

std::vector<std::string> names_of_memory_kinds() {
  std::vector<std::string> names;
  for (const MemoryKind kind : kMemoryKinds) names.emplace_back(name_of(kind));
  names.emplace_back("gaps, scratch and graphs");
  return names;
}

void plan_steps(std::span<ComparedStep> steps, std::atomic<std::int64_t>& planned) {
  const std::vector<StepGroup> groups = grouped(steps);
  run_in_parallel(std::ssize(groups), [&](std::int64_t i) {
    KnownLayouts known;
    for (ComparedStep* const step : groups[static_cast<std::size_t>(i)]) {
      step->fastest = fastest_step(step->request, known);
      ++planned;
    }
  });
}

}  // namespace teratron::plan
