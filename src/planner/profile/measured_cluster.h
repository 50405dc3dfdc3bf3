// The machine at hand as a cluster, for teratron plan and simulate.
#pragma once

#include "cluster/cluster.h"
#include "comm/communicator.h"
#include "ops/backend.h"

namespace teratron {

// A cluster with a device for each rank and the link between them. A device's numbers are means over all ranks,
// measured while all work. Only the back end's precision is measured; the others are assumed to be as fast. Every rank
// of `world` calls it; all return the same.
Cluster measured_cluster(Backend& backend, Communicator& world);

}  // namespace teratron
