// The ports of a cluster's links that the first copy of a model uses, and the messages that cross them.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "cluster/cluster.h"
#include "simulation/event_simulation.h"

namespace teratron::simulation {

// The devices of ranks: device() is that of a stage's first tensor-parallel rank.
struct StagePlaces {
  std::int64_t tensor = 1, stages = 1, data = 1;
  std::int64_t device(std::int64_t copy, std::int64_t stage) const { return (copy * stages + stage) * tensor; }
};

// Ports as links of the simulation. All tensor-parallel ranks of a stage send the same at the same time, so only the
// first one's messages are simulated, over its part of the bandwidth of a port that several share.
class Ports {
 public:
  Ports(const Cluster& cluster, const StagePlaces& places, EventSimulation& events);

  struct Way {
    RouteId route = -1;
    double latency = 0;  // seconds
  };
  // Links of a message from one stage to another.
  Way between(std::int64_t from, std::int64_t to);
  // Links of the same message in each other copy, as far as it shares ports with the first copy.
  std::vector<RouteId> of_other_copies(std::int64_t from, std::int64_t to);
  // Links of a ring over the copies of a stage. A ring uses all of them all the time. Latency: the slowest step's.
  Way ring(std::int64_t stage);

  struct Port {
    LinkId link = -1;
    double sharers = 1;  // ranks that send the same through this port, the simulated one included
  };
  const std::vector<Port>& used() const { return used_; }

 private:
  // Appends the ports between two devices that the first copy uses.
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
