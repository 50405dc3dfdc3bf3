// Seconds of collectives and messages on links that nothing else uses.
#pragma once

#include <cstdint>

#include "cluster/cluster.h"

namespace teratron {

// Ranks first, first + stride, .. The ranks between them form equal groups that run the same collective at the same
// time; groups that share a port each get an equal share of it.
struct CollectiveGroup {
  std::int64_t first = 0, size = 1, stride = 1;
};

// Seconds of rings over the group's ranks in order. In each step, bytes / size go from each rank to the next. `bytes`:
// of the whole tensor, that is after a gather, before a reduce-scatter, and either way of an all-reduce.
double all_reduce_seconds(const Cluster& cluster, const CollectiveGroup& group, double bytes);  // 2 (n - 1) steps
double all_gather_seconds(const Cluster& cluster, const CollectiveGroup& group, double bytes);  // n - 1 steps
double reduce_scatter_seconds(const Cluster& cluster, const CollectiveGroup& group, double bytes);

// Seconds of a message from one rank to another; 0 from a rank to itself.
double message_seconds(const Cluster& cluster, std::int64_t from, std::int64_t to, double bytes);

// Bytes a second that each rank of the group can send to the next one of its ring, all of them at once.
double ring_bandwidth(const Cluster& cluster, const CollectiveGroup& group);

}  // namespace teratron
