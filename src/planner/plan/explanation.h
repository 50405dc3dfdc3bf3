// A layout as each rank sees it, for people.
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "comm/rank_coordinates.h"
#include "settings/step_settings.h"

namespace teratron::plan {

// The ranks of each group along one axis (Megatron-LM, Figure 8), groups in the order of their first ranks.
std::vector<std::vector<int>> groups_of(const MeshShape& shape, GroupRank RankCoordinates::*axis);

// The number of groups whose ranks lie on several hosts; 0 where one host has all devices.
std::int64_t groups_across_hosts(const std::vector<std::vector<int>>& groups, const Cluster& cluster);

// The groups of ranks, the shapes of a rank's matrices, and what ranks that share the vocabulary exchange for the loss.
// `settings` have no faults; `vocab_size`: where the model has none.
std::string explanation(const StepSettings& settings, const Cluster& cluster, std::int64_t vocab_size);

}  // namespace teratron::plan
