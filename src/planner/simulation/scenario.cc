#include "simulation/scenario.h"

#include <cmath>
#include <numeric>
#include <optional>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/file.h"
#include "pipeline/checker.h"
#include "pipeline/deferral.h"
#include "pipeline/token_slices.h"
#include "pipeline/vocabulary_passes.h"
#include "slicing/auto_slices.h"
#include "slicing/cost/iteration_times.h"

namespace teratron::simulation {
namespace {

// `zero`: whether 0 is allowed.
void need_time(Faults& faults, Flag flag, double value, bool zero) {
  const bool is_time = std::isfinite(value) && (value > 0 || (zero && value == 0)) && value <= 1e9;
  faults.add_if(!is_time, "{} is {}; it must be a time {} 0, in milliseconds", flag, value,
                zero ? "of at least" : "above");
}

// The cut of sequences, and the profile with its costs.
struct Slices {
  std::vector<std::int64_t> lengths;  // tokens; empty: not known
  int count = 1;
  std::vector<pipeline::MicroBatchCut> cuts;  // of micro-batches that are cut in different ways
  std::optional<slicing::Profile> profile;    // none: the user gives the times
};

void require_tokens(const Scenario& scenario, const std::vector<std::int64_t>& lengths, std::int64_t tokens) {
  const std::int64_t sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (sum == tokens) return;
  throw_user_error("--slices {} add up to {} tokens, not to the {} of a sequence; change --slices or --seq-length",
                   scenario.slices, sum, tokens);
}

pipeline::TokenSlices parsed_slices(const Scenario& scenario) {
  return pipeline::parse_token_slices("--slices", scenario.slices, pipeline::SliceForms::kFixed);
}

pipeline::ScheduleSize size_of(const Scenario& scenario, const Slices& slices) {
  pipeline::ScheduleSize size{.stages = static_cast<int>(scenario.stages),
                              .micro_batches = static_cast<int>(scenario.micro_batches),
                              .slices = slices.count,
                              .virtual_stages = static_cast<int>(scenario.virtual_stages)};
  size.vocabulary_parallel = scenario.vocabulary_parallel;
  if (!slices.cuts.empty()) {
    size.micro_batches = static_cast<int>(slices.cuts.size());
    if (scenario.gives_micro_batches && scenario.micro_batches != size.micro_batches) {
      throw_user_error("--micro-batches is {}, but --slices {} has {}; leave out --micro-batches",
                       scenario.micro_batches, scenario.slices,
                       counted(size.micro_batches, "micro-batch", "micro-batches"));
    }
    size.set_slices(pipeline::TokenSlices{.cuts = slices.cuts}.slices_each());
  }
  const double actions = pipeline::count_actions(size);
  const bool can_be = pipeline::size_faults(scenario.schedule, size).empty();  // else make_schedule() throws
  if (can_be && actions > static_cast<double>(pipeline::kMostActions)) {
    throw_user_error(
        "this schedule has {:.0f} actions, and {} are the most that is simulated; use fewer --stages, --micro-batches, "
        "--slices or --virtual-stages",
        actions, pipeline::kMostActions);
  }
  return size;
}

// Slices with the profile's costs: those that the user gives, or the best ones.
Slices profiled_slices(const Scenario& scenario) {
  slicing::Profile profile = slicing::profile_from_json(read_file(scenario.profile), scenario.profile);
  const std::int64_t longest = profile.longest();
  const std::int64_t tokens = scenario.tokens > 0 ? scenario.tokens : longest;
  if (tokens > longest) {
    throw_user_error("--seq-length is {}, but '{}' was measured up to {} tokens", tokens, scenario.profile.string(),
                     longest);
  }
  std::vector<std::int64_t> lengths;
  if (scenario.slices == "auto") {
    lengths = slicing::best_slice_lengths(profile, tokens, scenario.schedule, size_of(scenario, {}));
  } else {
    pipeline::TokenSlices slices = parsed_slices(scenario);
    if (!slices.cuts.empty()) {
      for (const pipeline::MicroBatchCut& cut : slices.cuts) require_tokens(scenario, cut.slice_tokens, tokens);
      return {.count = slices.count, .cuts = std::move(slices.cuts), .profile = std::move(profile)};
    }
    lengths = slices.lengths.empty() ? pipeline::even_slices(tokens, slices.count) : slices.lengths;
  }
  require_tokens(scenario, lengths, tokens);
  const int count = static_cast<int>(lengths.size());
  return {.lengths = std::move(lengths), .count = count, .profile = std::move(profile)};
}

Slices given_slices(const Scenario& scenario) {
  const pipeline::TokenSlices slices = parsed_slices(scenario);
  if (slices.count > pipeline::kMostActions)
    throw_user_error("--slices is {}; use {} at most", slices.count, pipeline::kMostActions);
  for (const pipeline::MicroBatchCut& cut : slices.cuts) {
    require_tokens(scenario, cut.slice_tokens, scenario.tokens > 0 ? scenario.tokens : slices.cuts.front().tokens());
  }
  if (!slices.lengths.empty() && scenario.tokens > 0) require_tokens(scenario, slices.lengths, scenario.tokens);
  return {.lengths = slices.lengths, .count = slices.count, .cuts = slices.cuts, .profile = std::nullopt};
}

pipeline::Costs costs_of(const Scenario& scenario, const Slices& slices, const pipeline::Schedule& schedule) {
  if (!slices.profile && !slices.cuts.empty()) {
    return pipeline::costs_of_each(
        schedule, true,
        [&](int m) {
          const pipeline::MicroBatchCut& cut = slices.cuts[static_cast<std::size_t>(m)];
          const double share = static_cast<double>(cut.sequences) / static_cast<double>(slices.cuts.front().sequences);
          return pipeline::even_times(schedule.slices_of(m), cut.slice_tokens, share * scenario.forward,
                                      share * scenario.backward);
        },
        scenario.transfer);
  }
  if (!slices.profile) {
    return pipeline::sliced_costs(
        schedule, pipeline::even_times(slices.count, slices.lengths, scenario.forward, scenario.backward),
        scenario.transfer);
  }
  pipeline::Costs costs = slicing::paced_costs(
      *slices.profile, schedule, slices.cuts.empty() ? slicing::alike(*slices.profile, slices.lengths) : slices.cuts);
  for (double& transfer : costs.transfers) transfer += scenario.transfer;
  return costs;
}

// Adds the times of heads. A slice takes the same share of the head's time as of the forward's.
void add_heads(const Scenario& scenario, const pipeline::Schedule& schedule, pipeline::Costs& costs) {
  for (std::vector<pipeline::PassTimes>& cell : costs.passes) {
    for (pipeline::PassTimes& times : cell) {
      times.head = scenario.head / scenario.forward * times.forward * schedule.virtual_stages;
    }
  }
}

// The slowest stage's sum over all slices that have a cost of their own.
pipeline::PassTimes slowest_stage(const pipeline::Schedule& schedule, const pipeline::Costs& costs) {
  pipeline::PassTimes slowest;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    pipeline::PassTimes sum;
    for (int chunk = 0; chunk < schedule.virtual_stages; ++chunk) {
      const int cell = schedule.cell_map().cell(stage, chunk);
      for (const pipeline::PassTimes& slice : costs.passes[static_cast<std::size_t>(cell)]) {
        sum.forward += slice.forward;
        sum.backward += slice.backward;
      }
    }
    if (sum.forward + sum.backward > slowest.forward + slowest.backward) slowest = sum;
  }
  return slowest;
}

}  // namespace

Faults Scenario::faults() const {
  Faults faults;
  faults.need_between({"stages"}, stages, 1, 10000);
  faults.need_between({"micro-batches"}, micro_batches, 1, 1000000);
  faults.need_between({"virtual-stages"}, virtual_stages, 1, 1000);
  faults.need_between({"seq-length"}, tokens, 0, std::int64_t{1} << 24);
  need_time(faults, {"forward-ms"}, forward, false);
  need_time(faults, {"backward-ms"}, backward, false);
  need_time(faults, {"transfer-ms"}, transfer, true);
  need_time(faults, {"head-ms"}, head, true);
  faults.add_if(head > 0 && !vocabulary_parallel, "{} is of heads that stages share; give {}, too", Flag{"head-ms"},
                Flag{"vocabulary-parallel"});
  faults.add_if(vocabulary_parallel && !profile.empty(), "{} is of stages without {}; give {} and {} instead",
                Flag{"profile"}, Flag{"vocabulary-parallel"}, Flag{"forward-ms"}, Flag{"head-ms"});
  faults.add_if(gives_times && !profile.empty(), "{} says what passes cost; leave out {} and {}", Flag{"profile"},
                Flag{"forward-ms"}, Flag{"backward-ms"});
  faults.add_if(slices == "auto" && profile.empty(), "{} is auto, which needs to know what slices cost; give {} FILE",
                Flag{"slices"}, Flag{"profile"});
  faults.add_if(slices == "joint",
                "{} is joint, which 'teratron plan' answers; give the cuts that it prints, such as "
                "2x512,512+1x1024",
                Flag{"slices"});
  faults.add_if(slices.starts_with("documents:"),
                "{} is {}, which goes by the documents of each micro-batch; give uniform:N", Flag{"slices"}, slices);
  faults.add_if(slices == "auto" && !pipeline::traits_of(schedule).takes_slices,
                "{} is auto, but schedule {} runs sequences whole; choose terapipe or seq1f1b", Flag{"slices"},
                pipeline::name_of(schedule));
  return faults;
}

ScenarioResult simulate(const Scenario& scenario) {
  const Slices slices = scenario.profile.empty() ? given_slices(scenario) : profiled_slices(scenario);
  const pipeline::ScheduleSize size = size_of(scenario, slices);
  ScenarioResult result{
      .schedule = pipeline::make_schedule(scenario.schedule, size), .lengths = slices.lengths, .cuts = slices.cuts};
  pipeline::Costs costs = costs_of(scenario, slices, result.schedule);
  const std::int64_t most = scenario.defer_weight_gradients
                                ? pipeline::deferral_bound(scenario.schedule, result.schedule)
                                : pipeline::most_live_slices(result.schedule);
  if (scenario.defer_weight_gradients) {
    result.schedule = pipeline::defer_weight_gradients(result.schedule, costs, most);
  }
  if (scenario.vocabulary_parallel) {
    add_heads(scenario, result.schedule, costs);
    result.schedule = pipeline::with_vocabulary_passes(result.schedule, costs);
  }
  pipeline::check_schedule(result.schedule, most);
  result.simulation = pipeline::simulate(result.schedule, costs);
  const pipeline::PassTimes stage = slowest_stage(result.schedule, costs);
  result.work = stage.forward + stage.backward;
  if (!result.cuts.empty()) {
    result.peaks = pipeline::memory_peaks(result.schedule, result.cuts);
    return result;
  }
  result.peaks = pipeline::memory_peaks(result.schedule, result.lengths);
  result.work *= size.micro_batches;
  if (scenario.vocabulary_parallel) return result;
  result.closed_form = pipeline::closed_form(scenario.schedule, size, stage.forward, stage.backward);
  return result;
}

}  // namespace teratron::simulation
