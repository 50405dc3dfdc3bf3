#include "cli/plan/plan_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "cli/report.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "html/page.h"
#include "html/plan_page.h"
#include "model/family.h"
#include "model/presets.h"
#include "plan/train_command.h"

namespace teratron {
namespace {

// A quarter, a half, .. and four times a number, as far as these are whole and within `most`.
std::vector<std::int64_t> around(std::int64_t middle, std::int64_t most) {
  std::vector<std::int64_t> values;
  for (const std::int64_t part : {4, 2}) {
    if (middle % part == 0) values.push_back(middle / part);
  }
  for (const std::int64_t times : {1, 2, 4}) {
    if (middle <= most / times) values.push_back(middle * times);
  }
  return values;
}

std::int64_t model_parameters(const PlanOptions& options) {
  const plan::PlanRequest request = options.request();
  return request.model.model.model_for(request.vocab_size).parameters();
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

PlannedStep planned_step(PlanOptions options, std::int64_t devices, std::int64_t sequences) {
  options.devices = devices;
  options.train.batch.global_batch_size = sequences;
  const plan::PlanRequest request = options.request();
  PlannedStep step{.devices = devices, .sequences = sequences};
  plan::SearchResult result;
  try {
    result = plan::search_layouts(request, 0);
  } catch (const UserError&) {
    return step;  // no layout has so many devices
  }
  if (result.best.empty()) {
    if (result.smallest) step.layout = result.smallest->text();
    step.memory = result.smallest_bytes;
    return step;
  }
  const plan::PlannedLayout& best = result.best.front();
  const std::vector<LinkLevel>& links = request.cluster.links;
  step.fits = true;
  step.layout = best.layout.text();
  step.command = plan::train_command(best.config, links.size() > 1 ? links.front().devices : 0);
  step.memory = std::ranges::max(best.memory);
  step.seconds = best.time.seconds;
  step.tokens_per_second = best.time.tokens_per_second;
  step.mfu = best.time.flops_utilization;
  step.compute = best.parts.compute;
  step.recompute = best.parts.recompute;
  step.tensor = best.parts.tensor;
  step.bubble = best.parts.bubble;
  step.after = best.parts.after;
  return step;
}

}  // namespace

void write_plan_page(const PlanOptions& options) {
  require_replaceable(options.html, "page of teratron", kPageBeginning);
  const plan::PlanRequest request = options.request();
  const ModelConfig model = request.model.model.model_for(request.vocab_size);
  const Cluster& cluster = request.cluster;
  PlanPage page{.model = fmt::format("{} of {} parameters", model.family().title,
                                     readable_count(static_cast<double>(model.parameters()))),
                .cluster = cluster.name,
                .device = cluster.device.name,
                .room = static_cast<std::int64_t>(cluster.device.memory),
                .watts = cluster.device.watts,
                .tokens = options.tokens_of(request),
                .price = options.price,
                .models = {},
                .steps = {}};
  const std::vector<PlanOptions> models = models_around(options);
  const std::vector<std::int64_t> all_devices = around(cluster.devices, kMostRanks);
  const std::vector<std::int64_t> all_sequences = around(request.model.batch.global_batch_size, std::int64_t{1} << 40);
  const auto count = static_cast<double>(models.size() * all_devices.size() * all_sequences.size());
  std::atomic<double> share{0};
  LongTask progress("planning", [&share] { return share.load(); });
  for (const PlanOptions& of_model : models) {
    const bool is_first_model = model_parameters(of_model) == model.parameters();
    page.models.push_back(name_of_model(of_model));
    for (const std::int64_t devices : all_devices) {
      for (const std::int64_t sequences : all_sequences) {
        if (is_first_model && devices == cluster.devices && sequences == request.model.batch.global_batch_size)
          page.first = page.steps.size();
        page.steps.push_back(planned_step(of_model, devices, sequences));
        page.steps.back().model = page.models.size() - 1;
        share = static_cast<double>(page.steps.size()) / count;
      }
    }
  }
  const std::string text = plan_page(page);
  write_file_atomically(options.html, text);
  const auto fitting = std::ranges::count_if(page.steps, &PlannedStep::fits);
  report(options.json,
         fmt::format("{}: {} of {} fit, {}\n", options.html.string(), fitting,
                     counted(std::ssize(page.steps), "planned step"), readable_bytes(text.size())),
         nlohmann::json({{"steps", page.steps.size()}, {"fitting", fitting}, {"bytes", text.size()}}).dump());
}

}  // namespace teratron
