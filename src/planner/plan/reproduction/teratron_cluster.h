// The papers' clusters as Teratron's program would use them: the column "Teratron" of the papers' tables.
#pragma once

#include "cluster/cluster.h"

namespace teratron::plan {

// The machine stays: devices, links, what sums over copies reach on them and take from the passes beside them, the
// share of the peak. What is counted from the paper's program gets Teratron's value, the cost model's default:
// attention that writes no scores, caches that lie where they are, gradients that products add up in fp32, recompute of
// what the backward needs. The time beside each kernel stays the paper's program's: Teratron's was never measured on a
// V100, and its back end refuses that card.
Cluster run_by_teratron(Cluster cluster);

}  // namespace teratron::plan
