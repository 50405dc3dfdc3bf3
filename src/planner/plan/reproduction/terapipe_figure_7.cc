// Figure 7: setting 5 with longer sequences.
#include <fmt/format.h>

#include "plan/reproduction/terapipe_figures.h"

namespace teratron::plan::terapipe {

void add_figure_7(Reproduction& reproduction) {
  std::vector<ReproducedCell> whole, sliced, speed_ups;
  for (const LongSequences& row : kLongSequences) {
    const SettingTimes times = times_of(setting(5), {.tokens = row.tokens, .sequences = row.sequences});
    const auto cell = [&](const char* quantity, const char* unit, const char* source, double published, double ours,
                          double teratron) {
      return ReproducedCell{.table = fmt::format("Figure 7, {}", quantity),
                            .name = fmt::format("{} tokens", row.tokens),
                            .unit = unit,
                            .source = source,
                            .published = published,
                            .ours = ours,
                            .teratron = teratron};
    };
    whole.push_back(cell("without slices", "s", "supplement", row.whole, times.papers.whole, times.teratrons.whole));
    sliced.push_back(cell("with slices", "s", "supplement", row.sliced, times.papers.sliced, times.teratrons.sliced));
    speed_ups.push_back(cell("speed-up by slices", "x", "section 4.3", row.speed_up, times.papers.speed_up(),
                             times.teratrons.speed_up()));
  }
  for (std::vector<ReproducedCell>* cells : {&whole, &sliced, &speed_ups})
    reproduction.cells.insert(reproduction.cells.end(), cells->begin(), cells->end());
}

}  // namespace teratron::plan::terapipe
