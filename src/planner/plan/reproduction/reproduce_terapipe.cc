// TeraPipe (arXiv 2102.07988) on p3.16xlarge.
#include "cluster/cluster_file.h"
#include "plan/reproduction/reproduction.h"
#include "plan/reproduction/terapipe_figures.h"

namespace teratron::plan {
namespace terapipe {

SettingTimes times_of(const Setting& setting, const Batch& batch) {
  const auto times = [&](const Iteration& iteration) {
    Times result{.slices = iteration.best_slices()};
    result.whole = iteration.seconds({batch.tokens});
    result.sliced = iteration.seconds(result.slices);
    return result;
  };
  SettingTimes result{
      .setting = setting, .paper = papers_iteration(setting, batch), .teratron = teratrons_iteration(setting, batch)};
  result.papers = times(*result.paper);
  result.teratrons = times(*result.teratron);
  return result;
}

}  // namespace terapipe

Reproduction reproduce_terapipe() {
  std::vector<terapipe::SettingTimes> settings;
  for (const terapipe::Setting& setting : terapipe::settings())
    settings.push_back(terapipe::times_of(setting, {.tokens = terapipe::kTokens, .sequences = setting.sequences}));
  Reproduction result{.title = "TeraPipe on p3.16xlarge (arXiv 2102.07988)"};
  terapipe::add_figure_3(result);
  terapipe::add_figure_5(result, settings);
  terapipe::add_figure_6(result, settings);
  terapipe::add_figure_7(result);
  result.ranking = terapipe::ranked_pairs(settings);
  const Cluster cluster = find_cluster("p3.16xlarge", 16);
  result.fitted = fitted_constants(cluster);
  result.fitted.push_back({"bandwidth of " + cluster.links[1].name, cluster.links[1].bandwidth, cluster.links[1].from});
  return result;
}

}  // namespace teratron::plan
