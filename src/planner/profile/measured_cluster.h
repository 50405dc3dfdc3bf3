// The machine at hand as a cluster, for teratron plan and simulate.
#pragma once

#include "cluster/cluster.h"
#include "comm/communicator.h"
#include "ops/backend.h"

namespace teratron {

// A device for each rank, whose numbers are the means of all ranks at work at once, and the link between them. One
// precision is measured, the back end's; the others are taken to be as fast. Every rank of `world` calls it; all return
// the same.
Cluster measured_cluster(Backend& backend, Communicator& world);

}  // namespace teratron
