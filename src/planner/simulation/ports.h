// The ports of a cluster's links that one copy of a model has, and what crosses them.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "cluster/cluster.h"
#include "simulation/event_simulation.h"

namespace teratron::simulation {

// Devices of the first tensor-parallel ranks of the stages.
struct StagePlaces {
  std::int64_t tensor = 1, stages = 1, data = 1;
  std::int64_t device(std::int64_t copy, std::int64_t stage) const { return (copy * stages + stage) * tensor; }
};

// Ports of the simulation's links. All tensor-parallel ranks of a stage send the same at the same time: the simulation
// has the first one's messages, and the first one's part of the bandwidth of a port that several share.
class Ports {
 public:
  Ports(const Cluster& cluster, const StagePlaces& places, EventSimulation& events);

  struct Way {
    RouteId route = -1;
    double latency = 0;  // seconds
  };
  // Links of a message from one stage to another.
  Way between(std::int64_t from, std::int64_t to);
  // Links of the other copies' same message, where they share ports with the first copy.
  std::vector<RouteId> of_other_copies(std::int64_t from, std::int64_t to);
  // Links of a ring over the copies of a stage, which uses all of them all the time. Latency: the slowest step's.
  Way ring(std::int64_t stage);

  struct Port {
    LinkId link = -1;
    double sharers = 1;  // ranks that do what the simulated one does
  };
  const std::vector<Port>& used() const { return used_; }

 private:
  // Adds the ports from one device to another that the first copy has.
  void add_hop(std::int64_t from, std::int64_t to, std::vector<LinkId>& links);
  void add_port(std::size_t level, std::int64_t device, bool is_out, std::vector<LinkId>& links);
  double latency(std::int64_t from, std::int64_t to) const;

  const Cluster& cluster_;
  StagePlaces places_;
  EventSimulation& events_;
  std::map<std::tuple<std::size_t, std::int64_t, bool>, LinkId> links_;
  std::vector<Port> used_;
};

}  // namespace teratron::simulation
