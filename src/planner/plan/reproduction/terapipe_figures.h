// TeraPipe's figures, each from the iterations of both programs.
#pragma once

#include "plan/reproduction/reproduction.h"
#include "plan/reproduction/terapipe_iteration.h"

namespace teratron::plan::terapipe {

// Without slices and with those that the program's own slicer chooses.
struct Times {
  double whole = 0, sliced = 0;
  std::vector<std::int64_t> slices;

  double speed_up() const { return whole / sliced; }
};
struct SettingTimes {
  const Setting& setting;
  std::unique_ptr<Iteration> paper, teratron;
  Times papers, teratrons;
};
SettingTimes times_of(const Setting& setting, const Batch& batch);

// The settings whose seconds the constants of p3.16xlarge were fitted to, with and without slices (docs/plan.md).
bool is_fitted(const Setting& setting);

void add_figure_3(Reproduction& reproduction);
void add_figure_5(Reproduction& reproduction, const std::vector<SettingTimes>& settings);
void add_figure_6(Reproduction& reproduction, const std::vector<SettingTimes>& settings);
void add_figure_7(Reproduction& reproduction);

// Seconds a sequence of Figure 5.
RankedPairs ranked_pairs(const std::vector<SettingTimes>& settings);

}  // namespace teratron::plan::terapipe
