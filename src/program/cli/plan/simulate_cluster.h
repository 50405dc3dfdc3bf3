// teratron simulate --cluster: a pipeline with costs that follow from a model's shape and a cluster.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/search/pipeline_choice.h"
#include "simulation/pipeline_run.h"
#include "simulation/scenario.h"
#include "train/config/config.h"

namespace teratron {

struct ClusterScenario {
  std::string cluster;  // empty: costs are given otherwise
  TrainConfig train;    // the model, the micro-batch, and the layout's parts that simulation::Scenario lacks
  bool has_precision = false;
  GivenPipeline given;             // of the pipeline
  std::vector<std::string> flags;  // that were given and need a cluster, without the dashes

  // `train` with the scenario's pipeline.
  TrainConfig config_of(const simulation::Scenario& scenario) const;
  Faults faults(const simulation::Scenario& scenario) const;
  Faults faults_without_cluster() const;
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

// A cluster with fewer devices than the layout is enlarged (find_cluster). UserError: that cannot be done, the cluster
// is wrong, or no pipeline that may be chosen fits.
ClusterRun simulate_on_cluster(const ClusterScenario& options, const simulation::Scenario& scenario);

std::string text_of(const ClusterRun& run);
nlohmann::ordered_json json_of(const ClusterRun& run);

}  // namespace teratron
