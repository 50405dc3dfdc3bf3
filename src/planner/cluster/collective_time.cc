#include "cluster/collective_time.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace teratron {
namespace {

std::size_t outermost_level(const Cluster& cluster, const CollectiveGroup& group) {
  return cluster.level_between(group.first, group.first + (group.size - 1) * group.stride);
}

double ring_seconds(const Cluster& cluster, const CollectiveGroup& group, double bytes) {
  if (group.size <= 1) return 0;
  const auto n = static_cast<double>(group.size);
  const double latency = cluster.links[outermost_level(cluster, group)].latency;
  return (n - 1) * (bytes / n / ring_bandwidth(cluster, group) + latency);
}

}  // namespace

double ring_bandwidth(const Cluster& cluster, const CollectiveGroup& group) {
  check(group.size > 1 && group.stride >= 1 && group.first >= 0, "a group of ranks");
  check(group.first + (group.size - 1) * group.stride < cluster.devices,
        "the group's ranks are devices of the cluster");
  // A ring crosses a port once in each direction, however many of its ranks lie beyond it; a shared port is crossed by
  // the rings of all the groups that lie between one another there.
  double slowest = std::numeric_limits<double>::infinity();
  for (std::size_t level = 0; level <= outermost_level(cluster, group); ++level) {
    const auto rings = static_cast<double>(std::min(group.stride, cluster.devices_of_port(level)));
    slowest = std::min(slowest, cluster.links[level].bandwidth / rings);
  }
  return slowest;
}

double all_reduce_seconds(const Cluster& cluster, const CollectiveGroup& group, double bytes) {
  return 2 * ring_seconds(cluster, group, bytes);
}

double all_gather_seconds(const Cluster& cluster, const CollectiveGroup& group, double bytes) {
  return ring_seconds(cluster, group, bytes);
}

double reduce_scatter_seconds(const Cluster& cluster, const CollectiveGroup& group, double bytes) {
  return ring_seconds(cluster, group, bytes);
}

double message_seconds(const Cluster& cluster, std::int64_t from, std::int64_t to, double bytes) {
  if (from == to) return 0;
  const LinkLevel& link = cluster.links[cluster.level_between(from, to)];
  return link.latency + bytes / link.bandwidth;
}

}  // namespace teratron
