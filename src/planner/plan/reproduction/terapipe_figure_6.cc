// Figure 6: even slices beside the slicer's.
#include <fmt/format.h>

#include <algorithm>

#include "pipeline/token_slices.h"
#include "plan/reproduction/terapipe_figures.h"

namespace teratron::plan::terapipe {
namespace {

double seconds_of_even(const Iteration& iteration, int slices) {
  return iteration.seconds(pipeline::even_slices(kTokens, slices));
}

// Algorithm 1 evens out the time of slices, so their lengths say what context costs.
std::string context_costs_less(const SettingTimes& times) {
  const auto [least, most] = std::ranges::minmax(times.papers.slices);
  const auto [published_least, published_most] = std::ranges::minmax(times.setting.slices);
  return fmt::format(
      "slices that take equally long are of {} to {} tokens by this model and were of {} to {} there, so that context "
      "costs less here and even slices lose less",
      least, most, published_least, published_most);
}

}  // namespace

void add_figure_6(Reproduction& reproduction, const std::vector<SettingTimes>& settings) {
  for (const Ablation& ablation : kAblations) {
    const SettingTimes& times = settings.at(static_cast<std::size_t>(ablation.setting - 1));
    Curve curve{.title = fmt::format("Figure 6, even slices in setting {}", ablation.setting),
                .x_axis = "slices",
                .unit = "s",
                .published = fmt::format("the best even slices take {:.2f} times as long as the slicer's (section 4.2)",
                                         ablation.times),
                .points = {}};
    double best = times.papers.whole, teratrons_best = times.teratrons.whole;
    for (int slices = 1; slices <= ablation.most; slices *= 2) {
      const double ours = seconds_of_even(*times.paper, slices), teratron = seconds_of_even(*times.teratron, slices);
      best = std::min(best, ours);
      teratrons_best = std::min(teratrons_best, teratron);
      curve.points.push_back({.x = fmt::format("{}", slices), .ours = ours, .teratron = teratron});
    }
    curve.points.push_back({.x = "slicer", .ours = times.papers.sliced, .teratron = times.teratrons.sliced});
    reproduction.curves.push_back(std::move(curve));
    reproduction.cells.push_back({.table = "Figure 6, best even slices beside the slicer's",
                                  .name = fmt::format("setting {}, 1 to {}", ablation.setting, ablation.most),
                                  .unit = "x",
                                  .source = "section 4.2",
                                  .published = ablation.times,
                                  .ours = best / times.papers.sliced,
                                  .teratron = teratrons_best / times.teratrons.sliced});
    if (ablation.setting == 8) reproduction.cells.back().cause = context_costs_less(times);
  }
}

}  // namespace teratron::plan::terapipe
