#include "cli/plan/plan_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "cli/report.h"
#include "cluster/cluster_file.h"
#include "cluster/presets.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "html/page.h"
#include "html/plan_page.h"
#include "model/family.h"
#include "model/presets.h"
#include "plan/fastest_steps.h"

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

// The model and, if it is a preset, the next smaller and the next larger one of its family; the smallest first.
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

// The most devices that the cluster can have. A host has no more than its links join.
std::int64_t most_devices(const PlanOptions& options) {
  if (find_cluster_preset(options.cluster)) return is_card(options) ? kMostCards : kMostRanks;
  const Cluster cluster = options.described ? *options.described : find_cluster(options.cluster);
  return cluster.links.size() > 1 ? kMostRanks : cluster.devices;
}

// Whether the preset can have as many devices as are asked for.
bool has_devices(const PlanOptions& options) {
  try {
    return find_cluster_preset(options.cluster, options.devices).has_value();
  } catch (const UserError&) {
    return false;
  }
}

// The cluster and, if it is a preset, others to compare it with: hosts of a network, or cards in a host's slots. Those
// that cannot have so many devices are left out.
std::vector<PlanOptions> clusters_around(const PlanOptions& options) {
  static constexpr std::array<std::string_view, 4> kHosts = {"dgx-a100", "dgx-h100", "h200", "dgx-b200"};
  static constexpr std::array<std::string_view, 4> kCards = {"rtx-4090", "rtx-5090", "l40s", "rtx-pro-6000"};
  std::vector<PlanOptions> around = {options};
  if (!find_cluster_preset(options.cluster)) return around;
  for (const std::string_view name : is_card(options) ? kCards : kHosts) {
    PlanOptions other = options;
    other.cluster = name;
    const bool can_be = has_devices(other) && other.faults().empty();
    if (name != options.cluster && can_be) around.push_back(std::move(other));
  }
  return around;
}

// A step of the page before it is planned.
struct Asked {
  PlanOptions options;
  PlannedStep step;
};

// Steps in the page's order; `page` gets its models, its clusters and the number of the first step.
std::vector<Asked> all_asked(const PlanOptions& options, const plan::PlanRequest& request, PlanPage& page) {
  const std::int64_t devices = request.cluster.devices, sequences = request.config.batch.global_batch_size;
  const std::vector<PlanOptions> clusters = clusters_around(options);
  for (const PlanOptions& one : clusters) {
    const Cluster cluster = one.request().cluster;
    page.clusters.push_back(
        {cluster.name, cluster.device.name, static_cast<std::int64_t>(cluster.device.memory), cluster.device.watts});
  }
  const std::int64_t most = most_devices(options);
  std::vector<Asked> asked;
  for (const PlanOptions& of_model : models_around(options)) {
    const bool is_first_model = model_parameters(of_model) == model_parameters(options);
    for (std::size_t cluster = 0; cluster < clusters.size(); ++cluster) {
      for (const std::int64_t of_devices : around(devices, 4, most)) {
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

void take(plan::FastestStep fastest, PlannedStep& step) {
  step.fits = fastest.fits;
  step.layout = std::move(fastest.layout);
  step.command = std::move(fastest.command);
  step.memory = fastest.memory;
  step.kinds = std::move(fastest.kinds);
  step.seconds = fastest.time.seconds;
  step.tokens_per_second = fastest.time.tokens_per_second;
  step.mfu = fastest.time.flops_utilization;
  step.compute = fastest.parts.compute;
  step.recompute = fastest.parts.recompute;
  step.tensor = fastest.parts.tensor;
  step.bubble = fastest.parts.bubble;
  step.after = fastest.parts.after;
  for (const auto& [begin, end] : fastest.columns.windows) step.timeline.windows.emplace_back(begin, end);
  step.timeline.stages = std::move(fastest.columns.stages);
  step.timeline.rows = std::move(fastest.columns.rows);
}

void plan_all(std::vector<Asked>& asked) {
  std::vector<plan::ComparedStep> compared;
  std::vector<PlannedStep*> steps;  // of these
  for (Asked& one : asked) {
    one.options.devices = one.step.devices;
    one.options.train.batch.global_batch_size = one.step.sequences;
    try {
      compared.push_back({.request = one.options.request(), .model = one.step.model, .fastest = {}});
      steps.push_back(&one.step);
    } catch (const UserError&) {  // the cluster has no such number of devices
    }
  }
  std::atomic<std::int64_t> planned{0};
  const LongTask progress("planning", [&] {
    return compared.empty() ? 1.0 : static_cast<double>(planned.load()) / static_cast<double>(compared.size());
  });
  plan::plan_steps(compared, planned);
  for (std::size_t i = 0; i < steps.size(); ++i) take(std::move(compared[i].fastest), *steps[i]);
}

}  // namespace

void write_plan_page(const PlanOptions& given) {
  PlanOptions options = given;
  require_replaceable(options.html, "page of teratron", kPageBeginning);
  if (is_stream(options.cluster)) options.described = find_cluster(options.cluster);
  const plan::PlanRequest request = options.request();
  const ModelConfig model = request.config.model.model_for(request.vocab_size);
  PlanPage page{.model = fmt::format("{} of {} parameters", model.family().title,
                                     readable_count(static_cast<double>(model.parameters()))),
                .cluster = request.cluster.name,
                .tokens = options.tokens_of(request),
                .price = options.price,
                .models = {},
                .clusters = {},
                .kinds = plan::names_of_memory_kinds(),
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
