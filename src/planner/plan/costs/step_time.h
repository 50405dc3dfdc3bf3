// The time of an update of a training configuration on a cluster: the costs of its slices (layer_costs.h), in the
// schedule that training would run (train/plans/pipeline_plan.h), simulated on the cluster's links (simulation/).
#pragma once

#include <cstdint>

#include "cluster/cluster.h"
#include "plan/costs/layer_costs.h"
#include "simulation/pipeline_run.h"
#include "train/config/config.h"

namespace teratron::plan {

struct StepTime {
  double seconds = 0;  // of an update
  double pipeline_seconds = 0, bubble_share = 0;
  double tokens_per_second = 0;
  double flops_utilization = 0;     // MFU: the model's operations over the devices' peak
  double hardware_utilization = 0;  // HFU: with what is made again
};

// `config` has no faults, its token slices are chosen, and it fits the cluster's devices. `vocab_size`:
// where the configuration has none. UserError where the cluster has unknown constants.
// `context`: the configuration's sequences are one such rank's shares. These ranks count in data_parallel: they hold
// the same weights and sum gradients with the copies.
StepTime predict_step(const TrainConfig& config, const Cluster& cluster, std::int64_t vocab_size,
                      const ContextSplit& context = {});
simulation::PipelineWork work_of(const TrainConfig& config, const Cluster& cluster, std::int64_t vocab_size,
                                 const ContextSplit& context = {});

// Bytes on the links of a stage that stand for sums of `bytes` bytes over its copies at the cluster's sum_efficiency.
double bytes_on_links(const Cluster& cluster, const CollectiveGroup& copies, double bytes);

}  // namespace teratron::plan
