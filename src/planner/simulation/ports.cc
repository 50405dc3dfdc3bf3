#include "simulation/ports.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace teratron::simulation {

Ports::Ports(const Cluster& cluster, const StagePlaces& places, EventSimulation& events)
    : cluster_(cluster), places_(places), events_(events) {
  check(places.tensor * places.stages * places.data <= cluster.devices, "the cluster has a device for each rank");
}

double Ports::latency(std::int64_t from, std::int64_t to) const {
  return from == to ? 0 : cluster_.links[cluster_.level_between(from, to)].latency;
}

void Ports::add_port(std::size_t level, std::int64_t device, bool is_out, std::vector<LinkId>& links) {
  const std::int64_t together = cluster_.devices_of_port(level), group = device / together;
  const std::int64_t last_device = places_.device(0, places_.stages) - 1;
  if (group > last_device / together) return;  // no port of the first copy
  const auto [found, is_new] = links_.try_emplace({level, group, is_out}, -1);
  if (is_new) {
    const LinkLevel& link = cluster_.links[level];
    const auto sharers = static_cast<double>(std::min(places_.tensor, together));
    found->second =
        events_.add_link(fmt::format("{} {} {}", link.name, group, is_out ? "out" : "in"), link.bandwidth / sharers);
    used_.push_back({found->second, sharers});
  }
  links.push_back(found->second);
}

void Ports::add_hop(std::int64_t from, std::int64_t to, std::vector<LinkId>& links) {
  if (from == to) return;
  const std::size_t level = cluster_.level_between(from, to);
  add_port(level, from, true, links);
  add_port(level, to, false, links);
}

Ports::Way Ports::between(std::int64_t from, std::int64_t to) {
  const std::int64_t a = places_.device(0, from), b = places_.device(0, to);
  std::vector<LinkId> links;
  add_hop(a, b, links);
  return {events_.add_route(links), latency(a, b)};
}

std::vector<RouteId> Ports::of_other_copies(std::int64_t from, std::int64_t to) {
  std::vector<RouteId> routes;
  for (std::int64_t copy = 1; copy < places_.data; ++copy) {
    std::vector<LinkId> links;
    add_hop(places_.device(copy, from), places_.device(copy, to), links);
    if (!links.empty()) routes.push_back(events_.add_route(links));
  }
  return routes;
}

Ports::Way Ports::ring(std::int64_t stage) {
  std::vector<LinkId> links;
  double slowest = 0;
  for (std::int64_t copy = 0; copy < places_.data; ++copy) {
    const std::int64_t a = places_.device(copy, stage), b = places_.device((copy + 1) % places_.data, stage);
    add_hop(a, b, links);
    slowest = std::max(slowest, latency(a, b));
  }
  return {events_.add_route(links), slowest};
}

}  // namespace teratron::simulation
