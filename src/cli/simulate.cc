// teratron simulate: how long a pipeline's schedule takes and what it holds, from costs given or measured.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/live_line.h"
#include "console/text_table.h"
#include "pipeline/checker.h"
#include "pipeline/closed_form.h"
#include "pipeline/deferral.h"
#include "pipeline/drawing.h"
#include "pipeline/generators.h"
#include "pipeline/simulate.h"
#include "pipeline/token_slices.h"
#include "slicing/profile.h"
#include "slicing/slice_times.h"

namespace teratron {
namespace {

using pipeline::ScheduleKind;

constexpr std::int64_t kMostActions = 4'000'000;  // that a simulation holds in memory

struct SimulateOptions {
  ScheduleKind schedule = ScheduleKind::k1F1B;
  std::int64_t stages = 4, micro_batches = 8, virtual_stages = 1;
  std::string slices = "1";
  double forward = 1, backward = 2, transfer = 0;
  std::filesystem::path profile;
  std::int64_t tokens = 0;  // of a sequence; 0: the longest slice of the profile
  bool defer_weight_gradients = false;
  double svg_span = 0;
  std::filesystem::path svg, json;

  Faults faults() const;
};

FieldList fields_of(SimulateOptions& o) {
  FieldList list;
  list.group("Schedule");
  list.add_choice("schedule", o.schedule,
                  {{"gpipe", ScheduleKind::kGpipe},
                   {"1f1b", ScheduleKind::k1F1B},
                   {"interleaved", ScheduleKind::kInterleaved},
                   {"terapipe", ScheduleKind::kTeraPipe},
                   {"seq1f1b", ScheduleKind::kSeq1F1B}},
                  "in what order stages work");
  list.add("stages", &o.stages, "K", "stages of the pipeline");
  list.add("micro-batches", &o.micro_batches, "M", "micro-batches an iteration");
  list.add("slices", &o.slices, "uniform:N|L,L,..|auto",
           "slices of tokens: so many (N does too), their lengths, or the best for the profile");
  list.add("virtual-stages", &o.virtual_stages, "V", "cells a stage, for interleaved");
  list.add("defer-weight-gradients", &o.defer_weight_gradients, "",
           "make weight gradients where a stage would wait, in the memory that the schedule takes anyway");
  list.group("Costs");
  list.add("forward-ms", &o.forward, "F", "forward of a micro-batch in a stage");
  list.add("backward-ms", &o.backward, "B", "backward of it");
  list.add("profile", &o.profile, "FILE", "costs as measured, in place of --forward-ms and --backward-ms");
  list.add("seq-length", &o.tokens, "L", "tokens of a sequence, with --profile; 0: the longest that it holds");
  list.add("transfer-ms", &o.transfer, "T",
           "until a slice's result is at the next stage; with --profile, on top of what was measured");
  list.group("Output");
  list.add("svg", &o.svg, "FILE", "the timeline as a picture");
  list.add("svg-span-ms", &o.svg_span, "T", "at least so much time across the picture, for pictures to compare");
  add_json_field(list, o.json);
  return list;
}

Faults SimulateOptions::faults() const {
  Faults faults;
  const auto need_time = [&](Flag flag, double value, bool zero) {
    const bool is_time = std::isfinite(value) && (value > 0 || (zero && value == 0)) && value <= 1e9;
    faults.add_if(!is_time, "{} is {}; it must be a time {} 0, in milliseconds", flag, value,
                  zero ? "of at least" : "above");
  };
  faults.need_between({"stages"}, stages, 1, 10000);
  faults.need_between({"micro-batches"}, micro_batches, 1, 1000000);
  faults.need_between({"virtual-stages"}, virtual_stages, 1, 1000);
  faults.need_between({"seq-length"}, tokens, 0, std::int64_t{1} << 24);
  need_time({"forward-ms"}, forward, false);
  need_time({"backward-ms"}, backward, false);
  need_time({"transfer-ms"}, transfer, true);
  need_time({"svg-span-ms"}, svg_span, true);
  faults.add_if(slices == "auto" && profile.empty(), "{} is auto, which needs to know what slices cost; give {} FILE",
                Flag{"slices"}, Flag{"profile"});
  faults.add_if(slices == "auto" && schedule != ScheduleKind::kTeraPipe && schedule != ScheduleKind::kSeq1F1B,
                "{} is auto, but schedule {} runs sequences whole; choose terapipe or seq1f1b", Flag{"slices"},
                pipeline::name_of(schedule));
  return faults;
}

struct SliceCosts {
  std::vector<std::int64_t> lengths;  // tokens; empty: of no known length
  int count = 1;
  std::optional<slicing::Profile> profile;  // nothing: the times that the user gave
};

// With the lengths that the user gives or the best ones.
SliceCosts profiled_slices(const SimulateOptions& options) {
  slicing::Profile profile = slicing::profile_from_json(read_file(options.profile), options.profile);
  const std::int64_t longest = profile.longest();
  const std::int64_t tokens = options.tokens > 0 ? options.tokens : longest;
  if (tokens > longest) {
    throw_user_error("--seq-length is {}, but '{}' was measured up to {} tokens", tokens, options.profile.string(),
                     longest);
  }
  std::vector<std::int64_t> lengths;
  if (options.slices == "auto") {
    lengths = slicing::best_slice_lengths(profile, tokens, options.schedule, static_cast<int>(options.stages),
                                          static_cast<int>(options.micro_batches));
  } else {
    const pipeline::TokenSlices slices = pipeline::parse_token_slices("--slices", options.slices);
    lengths = slices.lengths.empty() ? pipeline::even_slices(tokens, slices.count) : slices.lengths;
  }
  const std::int64_t sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (sum != tokens) {
    throw_user_error("--slices {} add up to {} tokens, not to the {} of a sequence; change --slices or --seq-length",
                     options.slices, sum, tokens);
  }
  const int count = static_cast<int>(lengths.size());
  return {.lengths = std::move(lengths), .count = count, .profile = std::move(profile)};
}

SliceCosts given_slices(const SimulateOptions& options) {
  const pipeline::TokenSlices slices = pipeline::parse_token_slices("--slices", options.slices);
  if (slices.count > kMostActions) throw_user_error("--slices is {}; use {} at most", slices.count, kMostActions);
  return {.lengths = slices.lengths, .count = slices.count, .profile = std::nullopt};
}

pipeline::ScheduleSize size_of(const SimulateOptions& options, const SliceCosts& slices) {
  const pipeline::ScheduleSize size{.stages = static_cast<int>(options.stages),
                                    .micro_batches = static_cast<int>(options.micro_batches),
                                    .slices = slices.count,
                                    .virtual_stages = static_cast<int>(options.virtual_stages)};
  throw_if_any(pipeline::size_faults(options.schedule, size).texts());
  const double actions = 3.0 * size.stages * size.micro_batches * size.slices * size.virtual_stages;
  if (actions > static_cast<double>(kMostActions)) {
    throw_user_error(
        "this schedule has {:.0f} actions, and {} are the most that is simulated; use fewer --stages, --micro-batches, "
        "--slices or --virtual-stages",
        actions, kMostActions);
  }
  return size;
}

struct Result {
  pipeline::Schedule schedule;
  pipeline::Simulation simulation;
  std::vector<pipeline::MemoryPeak> peaks;  // by stage
  pipeline::ClosedForm closed_form;         // of the schedule as it is named, slices alike
  std::vector<std::int64_t> lengths;
  double work = 0;  // of the busiest stage, in milliseconds
};

pipeline::Costs costs_of(const SimulateOptions& options, const SliceCosts& slices, const pipeline::Schedule& schedule) {
  if (!slices.profile) {
    return pipeline::sliced_costs(schedule,
                                  pipeline::even_times(slices.count, slices.lengths, options.forward, options.backward),
                                  options.transfer);
  }
  pipeline::Costs costs = slicing::slice_costs(*slices.profile, schedule, slices.lengths);
  for (double& transfer : costs.transfers) transfer += options.transfer;
  return costs;
}

// Of a micro-batch in the stage that takes longest.
pipeline::PassTimes slowest_stage(const pipeline::Schedule& schedule, const pipeline::Costs& costs) {
  pipeline::PassTimes slowest;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    pipeline::PassTimes sum;
    for (int cell = stage; cell < schedule.cells(); cell += schedule.stages) {
      for (const pipeline::PassTimes& slice : costs.passes[static_cast<std::size_t>(cell)]) {
        sum.forward += slice.forward;
        sum.backward += slice.backward;
      }
    }
    if (sum.forward + sum.backward > slowest.forward + slowest.backward) slowest = sum;
  }
  return slowest;
}

Result simulated(const SimulateOptions& options) {
  const SliceCosts slices = options.profile.empty() ? given_slices(options) : profiled_slices(options);
  const pipeline::ScheduleSize size = size_of(options, slices);
  Result result{.schedule = pipeline::make_schedule(options.schedule, size), .lengths = slices.lengths};
  const pipeline::Costs costs = costs_of(options, slices, result.schedule);
  const std::int64_t most = pipeline::most_live_slices(result.schedule);
  if (options.defer_weight_gradients) {
    result.schedule = pipeline::defer_weight_gradients(result.schedule, costs, most);
  }
  pipeline::check_schedule(result.schedule, most);
  result.simulation = pipeline::simulate(result.schedule, costs);
  result.peaks = pipeline::memory_peaks(result.schedule, result.lengths);
  const pipeline::PassTimes stage = slowest_stage(result.schedule, costs);
  result.closed_form = pipeline::closed_form(options.schedule, size, stage.forward, stage.backward);
  result.work = size.micro_batches * (stage.forward + stage.backward);
  return result;
}

std::string text_of(const SimulateOptions& options, const Result& result) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight});
  table.row({"", "simulated", "closed form"});
  table.row({"iteration, ms", fmt::format("{:.4g}", result.simulation.iteration),
             fmt::format("{:.4g}", result.work + result.closed_form.bubble)});
  table.row({"bubbles, % of all stages' time", fmt::format("{:.2f}", 100 * result.simulation.bubble_share()),
             fmt::format("{:.2f}", 100 * result.closed_form.bubble / (result.work + result.closed_form.bubble))});
  double most = 0;
  for (const pipeline::MemoryPeak& peak : result.peaks) most = std::max(most, peak.micro_batches);
  table.row({"peak activations, micro-batches a stage", fmt::format("{:.4g}", most),
             fmt::format("{:.4g}", result.closed_form.peak_micro_batches)});
  std::string text = table.text(0);
  if (!result.lengths.empty()) text += fmt::format("slices, tokens: {}\n", fmt::join(result.lengths, ","));
  std::vector<std::string> peaks;
  for (const pipeline::MemoryPeak& peak : result.peaks) peaks.push_back(fmt::format("{:.4g}", peak.micro_batches));
  if (peaks.size() <= 16) text += fmt::format("peak activations by stage: {}\n", fmt::join(peaks, " "));
  text += "the closed form is of slices and stages alike, free transfers and whole backwards\n";
  const int columns = terminal_columns(stdout);
  const std::string drawing = pipeline::to_text(result.schedule, result.simulation, columns > 0 ? columns : 120);
  if (!drawing.empty()) text += "\n" + drawing;
  if (!options.svg.empty()) text += fmt::format("timeline: {}\n", options.svg.string());
  return text;
}

nlohmann::ordered_json json_of(const SimulateOptions& options, const Result& result) {
  nlohmann::ordered_json peaks = nlohmann::ordered_json::array();
  for (const pipeline::MemoryPeak& peak : result.peaks) {
    peaks.push_back({{"slices", peak.slices}, {"deferred", peak.deferred}, {"micro_batches", peak.micro_batches}});
  }
  return {{"schedule", pipeline::name_of(options.schedule)},
          {"stages", result.schedule.stages},
          {"micro_batches", result.schedule.micro_batches},
          {"slices", result.schedule.slices},
          {"slice_tokens", result.lengths},
          {"virtual_stages", result.schedule.virtual_stages},
          {"iteration_ms", result.simulation.iteration},
          {"bubble_share", result.simulation.bubble_share()},
          {"busy_ms", result.simulation.busy},
          {"peak_activations", peaks},
          {"closed_form",
           {{"iteration_ms", result.work + result.closed_form.bubble},
            {"bubble_ms", result.closed_form.bubble},
            {"peak_micro_batches", result.closed_form.peak_micro_batches}}}};
}

std::string title_of(const SimulateOptions& options, const Result& result) {
  std::string title = fmt::format("{}: {} stages, {} micro-batches", pipeline::name_of(options.schedule),
                                  result.schedule.stages, result.schedule.micro_batches);
  if (!result.lengths.empty()) {
    title += fmt::format(", slices of {} tokens", fmt::join(result.lengths, ","));
  } else if (result.schedule.slices > 1) {
    title += fmt::format(", {} slices", result.schedule.slices);
  }
  if (result.schedule.virtual_stages > 1) title += fmt::format(", {} virtual stages", result.schedule.virtual_stages);
  return title + (options.defer_weight_gradients ? ", deferred weight gradients" : "");
}

void run(const SimulateOptions& options) {
  const Result result = simulated(options);
  if (!options.svg.empty()) {
    const std::string title = title_of(options, result);
    write_file_atomically(options.svg,
                          pipeline::to_svg({{result.schedule, result.simulation, title}}, options.svg_span));
  }
  report(options.json, text_of(options, result), json_of(options, result).dump());
}

}  // namespace

Command simulate_command() {
  return make_command<SimulateOptions>("simulate", "tells how long a pipeline's schedule takes and what it holds", run);
}

}  // namespace teratron
