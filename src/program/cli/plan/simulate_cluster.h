// teratron simulate --cluster: a pipeline whose costs follow from a model's shape and the devices and links of a
// cluster.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/search/pipeline_choice.h"
#include "simulation/pipeline_run.h"
#include "slicing/scenario.h"
#include "train/config/config.h"

namespace teratron {

struct ClusterScenario {
  std::string cluster;  // empty: costs are given otherwise
  TrainConfig train;    // the model, the micro-batch and the layout but for what slicing::Scenario says
  bool has_precision = false;
  GivenPipeline given;  // of the pipeline

  // Together with what the scenario says of the pipeline.
  TrainConfig config_of(const slicing::Scenario& scenario) const;
  Faults faults(const slicing::Scenario& scenario) const;
};

void add_cluster_fields(FieldList& list, ClusterScenario& options);

struct ClusterRun {
  TrainConfig config;
  Cluster cluster;
  std::optional<plan::SearchResult> choice;  // of --schedule auto
  pipeline::Schedule schedule;
  simulation::PipelineResult result;
  std::vector<std::int64_t> memory;  // bytes of a rank of each stage, planned
  double tokens_per_second = 0;
};

// UserError: the cluster, or one that has fewer devices than the layout; no pipeline that fits, where one is chosen.
ClusterRun simulate_on_cluster(const ClusterScenario& options, const slicing::Scenario& scenario);

std::string text_of(const ClusterRun& run);
nlohmann::ordered_json json_of(const ClusterRun& run);

}  // namespace teratron
