#include "cli/plan/plan_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/host/threads.h"
#include "cli/report.h"
#include "cluster/presets.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "html/page.h"
#include "html/plan_page.h"
#include "model/family.h"
#include "model/presets.h"
#include "plan/costs/step_time.h"
#include "plan/search/layout_memory.h"
#include "plan/step_columns.h"
#include "plan/train_command.h"
#include "simulation/pipeline_run.h"

namespace teratron {
namespace {

// Parts and multiples of a number, as far as these are whole and within `most`.
std::vector<std::int64_t> around(std::int64_t middle, std::int64_t times, std::int64_t most) {
  std::vector<std::int64_t> values;
  for (std::int64_t part = times; part > 1; part /= 2) {
    if (middle % part == 0) values.push_back(middle / part);
  }
  for (std::int64_t multiple = 1; multiple <= times; multiple *= 2) {
    if (middle <= most / multiple) values.push_back(middle * multiple);
  }
  return values;
}

std::int64_t model_parameters(const PlanOptions& options) {
  const plan::PlanRequest request = options.request();
  return request.config.model.model_for(request.vocab_size).parameters();
}

// The model, and where it is a preset, the next smaller and the next larger one of its family; the smallest first.
std::vector<PlanOptions> models_around(const PlanOptions& options) {
  const ModelSettings& model = options.train.model;
  if (!model.has_preset_shape()) return {options};
  const std::int64_t middle = model_parameters(options);
  std::map<std::int64_t, PlanOptions> models = {{middle, options}};
  for (const ModelPreset& preset : model_presets()) {
    PlanOptions other = options;
    other.train.model.preset = preset.name;
    preset.apply_to(other.train.model.config);
    if (preset.kind == model.config.kind && other.faults().empty()) models.emplace(model_parameters(other), other);
  }
  const auto self = models.find(middle);
  std::vector<PlanOptions> around;
  if (self != models.begin()) around.push_back(std::prev(self)->second);
  around.push_back(options);
  if (std::next(self) != models.end()) around.push_back(std::next(self)->second);
  return around;
}

std::string name_of_model(const PlanOptions& options) {
  const std::string parameters = readable_count(static_cast<double>(model_parameters(options)));
  return options.train.model.has_preset_shape()
             ? fmt::format("{}, {} parameters", options.train.model.preset, parameters)
             : parameters + " parameters";
}

constexpr std::int64_t kMostCards = 8;  // in the slots of a host

bool is_card(const PlanOptions& options) {
  const std::optional<Cluster> preset = find_cluster_preset(options.cluster);
  return preset && preset->devices == 1;
}

// The cluster; where it is a preset, also those that one would compare it with: hosts of a network, or cards in a
// host's slots.
std::vector<PlanOptions> clusters_around(const PlanOptions& options) {
  static constexpr std::array<std::string_view, 4> kHosts = {"dgx-a100", "dgx-h100", "h200", "dgx-b200"};
  static constexpr std::array<std::string_view, 4> kCards = {"rtx-4090", "rtx-5090", "l40s", "rtx-pro-6000"};
  std::vector<PlanOptions> around = {options};
  if (!find_cluster_preset(options.cluster)) return around;
  for (const std::string_view name : is_card(options) ? kCards : kHosts) {
    PlanOptions other = options;
    other.cluster = name;
    if (name != options.cluster && other.faults().empty()) around.push_back(std::move(other));
  }
  return around;
}

PlannedTimeline timeline_of(const plan::PlanRequest& request, const TrainConfig& config) {
  const simulation::PipelineWork work = plan::work_of(config, request.cluster, request.vocab_size);
  plan::StepColumns columns = plan::columns_of(simulation::simulate(work, request.cluster));
  PlannedTimeline timeline{.windows = {}, .stages = std::move(columns.stages), .rows = std::move(columns.rows)};
  for (const auto& [begin, end] : columns.windows) timeline.windows.emplace_back(begin, end);
  return timeline;
}

// Kinds of memory on the page: the arena's, and what lies between its blocks or beside it.
std::vector<std::string> memory_kinds() {
  std::vector<std::string> names;
  for (const MemoryKind kind : kMemoryKinds) names.emplace_back(name_of(kind));
  names.emplace_back("gaps, scratch and graphs");
  return names;
}

std::vector<std::int64_t> kinds_of(const plan::PlanRequest& request, const TrainConfig& config, int stage) {
  const RankMemory memory = plan::memory_of_stage(config, request.context(), stage);
  std::vector<std::int64_t> kinds(memory.of_kind.begin(), memory.of_kind.end());
  kinds.push_back(memory.needed() - std::accumulate(kinds.begin(), kinds.end(), std::int64_t{0}));
  return kinds;
}

// The layout that needs least, which does not fit.
void add_smallest(const plan::PlanRequest& request, const plan::SearchResult& result, PlannedStep& step) {
  if (!result.smallest) return;
  const TrainConfig config = plan::with_layout(request.config, *result.smallest);
  const std::vector<std::int64_t> memory = plan::memory_of_stages(config, request.context());
  const auto fullest = std::ranges::max_element(memory) - memory.begin();
  step.layout = result.smallest->text();
  step.memory = memory[static_cast<std::size_t>(fullest)];
  step.kinds = kinds_of(request, config, static_cast<int>(fullest));
}

void add_best(const plan::PlanRequest& request, const plan::PlannedLayout& best, PlannedStep& step) {
  const std::vector<LinkLevel>& links = request.cluster.links;
  const auto fullest = std::ranges::max_element(best.memory) - best.memory.begin();
  step.fits = true;
  step.layout = best.layout.text();
  step.command = plan::train_command(best.config, links.size() > 1 ? links.front().devices : 0);
  step.memory = best.memory[static_cast<std::size_t>(fullest)];
  step.kinds = kinds_of(request, best.config, static_cast<int>(fullest));
  step.seconds = best.time.seconds;
  step.tokens_per_second = best.time.tokens_per_second;
  step.mfu = best.time.flops_utilization;
  step.compute = best.parts.compute;
  step.recompute = best.parts.recompute;
  step.tensor = best.parts.tensor;
  step.bubble = best.parts.bubble;
  step.after = best.parts.after;
  step.timeline = timeline_of(request, best.config);
}

// A step of the page that is to be planned.
struct Asked {
  PlanOptions options;
  PlannedStep step;
};

void plan_step(const plan::PlanRequest& request, plan::KnownLayouts& known, PlannedStep& step) {
  try {
    const plan::SearchResult result = plan::search_layouts(request, 0, known);
    result.best.empty() ? add_smallest(request, result, step) : add_best(request, result.best.front(), step);
  } catch (const UserError&) {  // no layout has so many devices
  }
}

// Steps in the page's order; `page` gets its models, its clusters and the number of the first step.
std::vector<Asked> all_asked(const PlanOptions& options, const plan::PlanRequest& request, PlanPage& page) {
  const std::int64_t devices = request.cluster.devices, sequences = request.config.batch.global_batch_size;
  const std::vector<PlanOptions> clusters = clusters_around(options);
  for (const PlanOptions& one : clusters) {
    const Cluster cluster = one.request().cluster;
    page.clusters.push_back(
        {cluster.name, cluster.device.name, static_cast<std::int64_t>(cluster.device.memory), cluster.device.watts});
  }
  std::vector<Asked> asked;
  for (const PlanOptions& of_model : models_around(options)) {
    const bool is_first_model = model_parameters(of_model) == model_parameters(options);
    for (std::size_t cluster = 0; cluster < clusters.size(); ++cluster) {
      for (const std::int64_t of_devices : around(devices, 4, is_card(options) ? kMostCards : kMostRanks)) {
        for (const std::int64_t of_sequences : around(sequences, 2, std::int64_t{1} << 40)) {
          if (is_first_model && cluster == 0 && of_devices == devices && of_sequences == sequences)
            page.first = asked.size();
          asked.push_back(
              {of_model,
               {.model = page.models.size(), .cluster = cluster, .devices = of_devices, .sequences = of_sequences}});
          asked.back().options.cluster = clusters[cluster].cluster;
        }
      }
    }
    page.models.push_back(name_of_model(of_model));
  }
  return asked;
}

// Steps of one model, number of devices and batch, on clusters of one kind of devices: their searches share layouts.
using StepsTogether = std::vector<std::pair<plan::PlanRequest, PlannedStep*>>;
std::vector<StepsTogether> together(std::vector<Asked>& asked) {
  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t, DType, int>, StepsTogether> groups;
  for (Asked& one : asked) {
    PlannedStep& step = one.step;
    one.options.devices = step.devices;
    one.options.train.batch.global_batch_size = step.sequences;
    try {
      plan::PlanRequest request = one.options.request();
      const MemoryPlanContext context = request.context();
      const std::tuple kind{step.model, step.devices, step.sequences, context.compute_dtype, context.threads};
      groups[kind].emplace_back(std::move(request), &step);
    } catch (const UserError&) {  // the cluster has no such number of devices
    }
  }
  std::vector<StepsTogether> all;
  for (auto& [kind, steps] : groups) all.push_back(std::move(steps));
  return all;
}

// Plans the steps on all threads.
void plan_all(std::vector<Asked>& asked) {
  const std::vector<StepsTogether> groups = together(asked);
  std::atomic<std::int64_t> done{0};
  LongTask progress("planning", [&] { return static_cast<double>(done.load()) / static_cast<double>(asked.size()); });
  run_in_parallel(std::ssize(groups), [&](std::int64_t i) {
    plan::KnownLayouts known;
    for (const auto& [request, step] : groups[static_cast<std::size_t>(i)]) {
      plan_step(request, known, *step);
      ++done;
    }
  });
}

}  // namespace

void write_plan_page(const PlanOptions& options) {
  require_replaceable(options.html, "page of teratron", kPageBeginning);
  const plan::PlanRequest request = options.request();
  const ModelConfig model = request.config.model.model_for(request.vocab_size);
  PlanPage page{.model = fmt::format("{} of {} parameters", model.family().title,
                                     readable_count(static_cast<double>(model.parameters()))),
                .cluster = request.cluster.name,
                .tokens = options.tokens_of(request),
                .price = options.price,
                .models = {},
                .clusters = {},
                .kinds = memory_kinds(),
                .steps = {}};
  std::vector<Asked> asked = all_asked(options, request, page);
  plan_all(asked);
  for (Asked& one : asked) page.steps.push_back(std::move(one.step));
  const std::string text = plan_page(page);
  write_file_atomically(options.html, text);
  const auto fitting = std::ranges::count_if(page.steps, &PlannedStep::fits);
  report(options.json,
         fmt::format("{}: {} of {} fit, {}\n", options.html.string(), fitting,
                     counted(std::ssize(page.steps), "planned step"), readable_bytes(text.size())),
         nlohmann::json({{"steps", page.steps.size()}, {"fitting", fitting}, {"bytes", text.size()}}));
}

}  // namespace teratron
