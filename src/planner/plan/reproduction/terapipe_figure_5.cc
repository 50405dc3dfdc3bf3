// Figure 5: ten settings without and with slices, their speed-ups, and the slices that were found.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plan/reproduction/terapipe_figures.h"

namespace teratron::plan::terapipe {
namespace {

constexpr int kFittedSettings[] = {1, 5, 6, 8, 9};

constexpr const char* kTwoCopies =
    "the two published times, of a second source, differ by 0.746 s, so that a slot of two layers takes 78 ms at least "
    "(35 slots against 51 of half of it or more), but one of a layer with its messages takes 26 ms in setting 5";
constexpr const char* kTwoCopiesOf1B =
    "the published time, of a second source, needs 19 ms a slot, but one of setting 3 takes 9.6 ms, of which 5.4 are "
    "on "
    "the wire, so with a second layer 14 ms";
std::string cause_of(const Setting& setting) {
  return setting.number == 2 ? kTwoCopiesOf1B : setting.number == 4 ? kTwoCopies : "";
}

std::string source_of(bool is_second_hand) { return is_second_hand ? "second source" : "supplement"; }

ReproducedCell cell_of(const Setting& setting, const char* quantity, const char* unit) {
  return {.table = fmt::format("Figure 5, {}", quantity),
          .name = fmt::format("setting {}", setting.number),
          .unit = unit,
          .source = source_of(setting.is_second_hand),
          .is_fitted = is_fitted(setting),
          .cause = cause_of(setting)};
}

SlicingPair slicing_of(const SettingTimes& times) {
  return {.name = fmt::format("setting {}", times.setting.number),
          .source = source_of(times.setting.are_slices_second_hand),
          .published = times.setting.slices,
          .ours = times.papers.slices,
          .seconds_of_published = times.paper->seconds(times.setting.slices),
          .seconds_of_ours = times.papers.sliced};
}

}  // namespace

bool is_fitted(const Setting& setting) {
  return std::ranges::find(kFittedSettings, setting.number) != std::end(kFittedSettings);
}

void add_figure_5(Reproduction& reproduction, const std::vector<SettingTimes>& settings) {
  const auto add = [&](ReproducedCell cell, double published, double ours, double teratron) {
    cell.published = published;
    cell.ours = ours;
    cell.teratron = teratron;
    reproduction.cells.push_back(std::move(cell));
  };
  for (const SettingTimes& t : settings)
    add(cell_of(t.setting, "without slices", "s"), t.setting.whole, t.papers.whole, t.teratrons.whole);
  for (const SettingTimes& t : settings)
    add(cell_of(t.setting, "with slices", "s"), t.setting.sliced, t.papers.sliced, t.teratrons.sliced);
  for (const SettingTimes& t : settings) {
    ReproducedCell cell = cell_of(t.setting, "speed-up by slices", "x");
    cell.source = "section 4.1";
    add(std::move(cell), t.setting.speed_up, t.papers.speed_up(), t.teratrons.speed_up());
  }
  for (const SettingTimes& t : settings) {
    SlicingPair pair = slicing_of(t);
    ReproducedCell cell = cell_of(t.setting, "slices of a sequence", "slices");
    cell.source = pair.source;
    cell.cause = fmt::format("by this model an iteration takes {:+.1f} % with the published slices",
                             100 * (pair.seconds_of_published / pair.seconds_of_ours - 1));
    add(std::move(cell), static_cast<double>(pair.published.size()), static_cast<double>(pair.ours.size()),
        static_cast<double>(t.teratrons.slices.size()));
    reproduction.slicings.push_back(std::move(pair));
  }
}

RankedPairs ranked_pairs(const std::vector<SettingTimes>& settings) {
  struct Plan {
    std::string name, preset;
    double published, ours;  // seconds a sequence
  };
  std::vector<Plan> plans;
  for (const SettingTimes& t : settings) {
    const auto sequences = static_cast<double>(t.setting.sequences * t.setting.data);
    plans.push_back({fmt::format("setting {} without slices", t.setting.number), t.setting.preset,
                     t.setting.whole / sequences, t.papers.whole / sequences});
    plans.push_back({fmt::format("setting {} with slices", t.setting.number), t.setting.preset,
                     t.setting.sliced / sequences, t.papers.sliced / sequences});
  }
  RankedPairs result;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (std::size_t j = i + 1; j < plans.size(); ++j) {
      const Plan &a = plans[i], &b = plans[j];
      if (a.preset != b.preset || std::abs(a.published - b.published) <= 0.05 * std::min(a.published, b.published))
        continue;
      ++result.pairs;
      if ((a.published < b.published) != (a.ours < b.ours)) result.wrong.push_back(a.name + " / " + b.name);
    }
  }
  return result;
}

}  // namespace teratron::plan::terapipe
