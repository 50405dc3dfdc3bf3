// teratron simulate: how long a pipeline's schedule takes and what it holds, from costs that are given, measured, or
// follow from a model's shape and a cluster.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/files/free_place.h"
#include "cli/commands.h"
#include "cli/plan/simulate_cluster.h"
#include "cli/report.h"
#include "console/live_line.h"
#include "console/readable.h"
#include "console/text_table.h"
#include "pipeline/drawing/drawing.h"
#include "pipeline/timing/simulate.h"
#include "pipeline/token_slices.h"
#include "plan/simulated_trace.h"
#include "report/svg.h"
#include "settings/pipeline_settings.h"
#include "simulation/pipeline_run.h"
#include "simulation/scenario.h"
#include "telemetry/trace_file.h"

namespace teratron {
namespace {

struct SimulateOptions : simulation::Scenario {
  std::optional<pipeline::ScheduleKind> asked = pipeline::ScheduleKind::k1F1B;  // none: auto
  ClusterScenario on_cluster;
  double svg_span = 0;
  std::int64_t global_batch_size = 0;
  std::filesystem::path svg, trace, json;

  Faults faults() const;
  const std::filesystem::path& picture() const {  // the one on standard output, if there is one
    return is_standard_stream(trace) ? trace : svg;
  }
};

FieldList fields_of(SimulateOptions& o) {
  FieldList list;
  list.group("Schedule");
  std::vector<std::pair<std::string, std::optional<pipeline::ScheduleKind>>> schedules = {{"auto", std::nullopt}};
  for (const auto& [name, kind] : schedule_choices()) schedules.emplace_back(name, kind);
  list.add_choice(
          "schedule", o.asked, schedules,
          "in what order stages work; auto, with --cluster: the fastest that fits, with cells, their layers, slices, "
          "deferred weight gradients, a shared vocabulary and recompute where they are not given")
      .when_set = [&o] {
    o.on_cluster.given.is_auto = !o.asked;
    if (o.asked) o.schedule = *o.asked;
  };
  list.add("stages", &o.stages, "K", "stages of the pipeline").alias = "pp";
  list.add("micro-batches", &o.micro_batches, "M", "micro-batches an iteration").when_set = [&o] {
    o.gives_micro_batches = true;
  };
  list.add("global-batch-size", &o.global_batch_size, "N", "").role = FieldRole::kHiddenFlag;  // of other commands
  list.add("slices", &o.slices, "uniform:N|L,L,..|NxL,L,..+NxL,..|auto",
           "slices of tokens: so many (N does too), their lengths, micro-batches of N sequences each in its own way "
           "(2x512,512+1x1024), or the best for the profile")
      .when_set = [&o] { o.on_cluster.given.token_slices = true; };
  list.add("virtual-stages", &o.virtual_stages, "V",
           "cells a stage, for interleaved and seq1f1b-i; 2 for v-min, v-half and v-zb")
      .when_set = [&o] { o.on_cluster.given.virtual_stages = true; };
  list.add("defer-weight-gradients", &o.defer_weight_gradients, "",
           "make weight gradients where a stage would wait, in the memory that the schedule takes anyway")
      .when_set = [&o] { o.on_cluster.given.defer_weight_gradients = true; };
  list.add("vocabulary-parallel", &o.vocabulary_parallel, "", "share embedding and head out over all stages").when_set =
      [&o] { o.on_cluster.given.vocabulary_parallel = true; };
  list.group("Costs");
  const auto gives_times = [&o] { o.gives_times = true; };
  list.add("forward-ms", &o.forward, "F", "forward of a micro-batch in a stage").when_set = gives_times;
  list.add("backward-ms", &o.backward, "B", "backward of it").when_set = gives_times;
  list.add("head-ms", &o.head, "H", "a stage's part of a micro-batch's head, with --vocabulary-parallel");
  list.add("profile", &o.profile, "FILE", "costs as measured, in place of --forward-ms and --backward-ms");
  list.add("seq-length", &o.tokens, "L",
           "tokens of a sequence, with --profile or --cluster; 0: the longest that the profile holds, 1024");
  list.add("transfer-ms", &o.transfer, "T",
           "until a slice's result is at the next stage; with --profile, on top of what was measured");
  add_cluster_fields(list, o.on_cluster);
  list.group("Output");
  list.add("svg", &o.svg, "FILE", "the timeline as a picture").writes();
  list.add("trace", &o.trace, "FILE", "the timeline for ui.perfetto.dev or chrome://tracing").writes();
  list.add("svg-span-ms", &o.svg_span, "T", "at least so much time across the picture, for pictures to compare");
  add_json_field(list, o.json);
  return list;
}

Faults SimulateOptions::faults() const {
  Faults faults = on_cluster.cluster.empty() ? Scenario::faults() : on_cluster.faults(*this);
  if (on_cluster.cluster.empty()) faults.add(on_cluster.faults_without_cluster());
  faults.add_if(on_cluster.given.is_auto && on_cluster.cluster.empty(),
                "{} is auto, which chooses by what passes cost and what fits; give {} NAME", Flag{"schedule"},
                Flag{"cluster"});
  add_output_faults(faults, "--svg", svg, json);
  add_output_faults(faults, "--trace", trace, json);
  faults.add_if(is_standard_stream(svg) && is_standard_stream(trace),
                "{} and {} both go to standard output (-); name a file for one of them", Flag{"svg"}, Flag{"trace"});
  faults.add_if(global_batch_size != 0, "{} is {} here, times --micro-batch-size and --dp; give {} M",
                Flag{"global-batch-size"}, Flag{"micro-batches"}, Flag{"micro-batches"});
  const bool is_span = std::isfinite(svg_span) && svg_span >= 0 && svg_span <= 1e9;
  faults.add_if(!is_span, "{} is {}; it must be a time of at least 0, in milliseconds", Flag{"svg-span-ms"}, svg_span);
  return faults;
}

// As the flag takes them; empty: of no known length.
std::string slices_of(const simulation::ScenarioResult& result) {
  return result.cuts.empty() ? fmt::format("{}", fmt::join(result.lengths, ",")) : pipeline::text_of(result.cuts);
}

std::string text_of(const SimulateOptions& options, const simulation::ScenarioResult& result) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight});
  const std::optional<pipeline::ClosedForm>& closed = result.closed_form;
  const double whole = closed ? result.work + closed->bubble : 0;
  const auto row = [&](const char* what, const char* format, double simulated, double closed_form) {
    table.row({what, fmt::format(fmt::runtime(format), simulated),
               closed ? fmt::format(fmt::runtime(format), closed_form) : ""});
  };
  double most = 0;
  for (const pipeline::MemoryPeak& peak : result.peaks) most = std::max(most, peak.micro_batches);
  table.row({"", "simulated", closed ? "closed form" : ""});
  row("iteration, ms", "{:.4g}", result.simulation.iteration, whole);
  row("bubbles, % of all stages' time", "{:.2f}", 100 * result.simulation.bubble_share(),
      closed ? 100 * closed->bubble / whole : 0);
  row("peak activations, micro-batches a stage", "{:.4g}", most, closed ? closed->peak_micro_batches : 0);
  std::string text = table.text(0);
  const std::string slices = slices_of(result);
  if (!slices.empty()) text += fmt::format("slices, tokens: {}\n", slices);
  std::vector<std::string> peaks;
  for (const pipeline::MemoryPeak& peak : result.peaks) peaks.push_back(fmt::format("{:.4g}", peak.micro_batches));
  if (peaks.size() <= 16) text += fmt::format("peak activations by stage: {}\n", fmt::join(peaks, " "));
  if (closed) text += "the closed form is of slices and stages alike, free transfers and whole backwards\n";
  const int columns = terminal_columns(stdout);
  const std::string drawing = pipeline::to_text(result.schedule, result.simulation, columns > 0 ? columns : 120);
  if (!drawing.empty()) text += "\n" + drawing;
  if (!options.svg.empty()) text += fmt::format("timeline: {}\n", options.svg.string());
  return text;
}

nlohmann::ordered_json json_of(const SimulateOptions& options, const simulation::ScenarioResult& result) {
  nlohmann::ordered_json peaks = nlohmann::ordered_json::array();
  for (const pipeline::MemoryPeak& peak : result.peaks) {
    peaks.push_back({{"slices", peak.slices}, {"deferred", peak.deferred}, {"micro_batches", peak.micro_batches}});
  }
  nlohmann::ordered_json closed_form;  // null where there is none
  if (result.closed_form) {
    closed_form = {{"iteration_ms", result.work + result.closed_form->bubble},
                   {"bubble_ms", result.closed_form->bubble},
                   {"peak_micro_batches", result.closed_form->peak_micro_batches}};
  }
  return {{"schedule", pipeline::name_of(options.schedule)},
          {"stages", result.schedule.stages},
          {"micro_batches", result.schedule.micro_batches},
          {"slices", result.schedule.slices},
          {"slice_tokens", result.lengths},
          {"cuts", pipeline::text_of(result.cuts)},
          {"virtual_stages", result.schedule.virtual_stages},
          {"iteration_ms", result.simulation.iteration},
          {"bubble_share", result.simulation.bubble_share()},
          {"busy_ms", result.simulation.busy},
          {"peak_activations", peaks},
          {"closed_form", closed_form}};
}

std::string title_of(const SimulateOptions& options, const simulation::ScenarioResult& result) {
  std::string title =
      fmt::format("{}: {}, {}", pipeline::name_of(options.schedule), counted(result.schedule.stages, "stage"),
                  counted(result.schedule.micro_batches, "micro-batch", "micro-batches"));
  if (!slices_of(result).empty()) {
    title += fmt::format(", slices of {} tokens", slices_of(result));
  } else if (result.schedule.slices > 1) {
    title += fmt::format(", {} slices", result.schedule.slices);
  }
  if (result.schedule.virtual_stages > 1) title += fmt::format(", {} virtual stages", result.schedule.virtual_stages);
  if (options.vocabulary_parallel) title += ", vocabulary parallel";
  return title + (options.defer_weight_gradients ? ", deferred weight gradients" : "");
}

void write_pictures(const SimulateOptions& options, const pipeline::Picture& picture,
                    std::span<const simulation::Span> spans = {}) {
  if (!options.svg.empty()) write_file_atomically(options.svg, pipeline::to_svg({picture}, options.svg_span));
  if (!options.trace.empty()) write_file_atomically(options.trace, plan::trace_of(picture.simulation, spans));
}

void run_on_cluster(const SimulateOptions& options) {
  const ClusterRun run = simulate_on_cluster(options.on_cluster, options);
  const std::string title = fmt::format("{} on {}: {}, {} of {}", pipeline::name_of(schedule_kind(run.config.pipeline)),
                                        run.cluster.name, counted(run.schedule.stages, "stage"),
                                        counted(run.schedule.micro_batches, "micro-batch", "micro-batches"),
                                        counted(run.schedule.slices, "slice"));
  write_pictures(options, {run.schedule, run.result.timeline, title}, run.result.spans);
  report_beside(options.picture(), options.json, text_of(run), json_of(run));
}

void run(const SimulateOptions& options) {
  require_replaceable(options.svg, "picture of teratron", svg::kBeginning);
  require_replaceable(options.trace, "trace of teratron", kTraceBeginning);
  if (!options.on_cluster.cluster.empty()) return run_on_cluster(options);
  const simulation::ScenarioResult result = simulation::simulate(options);
  write_pictures(options, {result.schedule, result.simulation, title_of(options, result)});
  report_beside(options.picture(), options.json, text_of(options, result), json_of(options, result));
}

}  // namespace

Command simulate_command() {
  return make_command<SimulateOptions>("simulate", "simulates the time and memory of a pipeline's schedule", run);
}

}  // namespace teratron
