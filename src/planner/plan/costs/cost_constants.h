// The constants of the cost model (plan/costs/layer_costs.h) that no data sheet has. A cluster gives those that were
// measured on it or fitted to it (Cluster::constants); the others are defaults.
#pragma once

#include <vector>

#include "cluster/cluster.h"

namespace teratron::plan {

struct CostConstants {
  double product_efficiency = 0;     // share of the peak that matrix products reach where all their sides are long
  double saturation = 0;             // a side of this length halves it
  double loss_passes = 0;            // reads or writes of all logits for the loss and its gradient
  double weight_passes = 0;          // reads or writes of a product's weights that its arithmetic does not hide
  double memory_efficiency = 0;      // share of the memory's bandwidth that passes over tensors reach
  double kernel_start = 0;           // seconds that each kernel takes besides
  double cores = 1;                  // of a device, of which a kernel takes all or, where that is faster, one
  double lone_start = 0;             // seconds that a kernel on one of them takes besides
  double gradient_speed = 1;         // of the products of gradients, against that of outputs
  double attention_efficiency = 0;   // share of the peak of attention that does not write its scores
  double writes_scores = 0;          // 1: attention is two batched products with passes over the scores between them
  double score_passes = 0;           // reads or writes of all scores in forward, and as many in backward
  double copies_cache = 0;           // 1: a slice copies the keys and values before it, and their gradients
  double adds_weight_gradients = 0;  // 1: a kernel of its own adds gradients up; 0: the product does
  double recomputes_all = 0;         // 1: full recompute makes the end of a layer again too, which nothing needs
  double gradient_bytes = 0;         // of a parameter's gradient, as it is added up and summed over the copies
  double update_bytes = 0;           // that an update reads and writes for a parameter
  double sum_efficiency = 0;         // share of a shared port's rate that sums over copies of the model reach
  double gather_slowdown = 0;        // time of a gather of updated weights over the links' own
  double pace = 0;                   // a pass's usual time over its time at its best
  double sum_interference = 0;       // seconds that a second of these sums takes from the passes beside it
  double head_saturation = 0;        // a head of this size halves the rate of attention that writes no scores
  double point_passes = 1;           // times the counted reads and writes of a layer's passes over memory
  double fp8_products = 0;           // 1: products of weights are of 8-bit numbers
  double fp8_efficiency = 0;         // share of the peak of 8 bits that they reach where all their sides are long
  double scaling_passes = 0;         // reads or writes of an operand, in 16 bits, to make 8 bits of it
  double again_products = 0;         // share of a layer's products that the backward makes again ..
  double again_points = 0;           // .. of its passes over memory
  double again_attention = 0;        // .. of attention ..
  double again_collectives = 0;      // .. and of collectives: of kinds of recompute that this program has not
  double exposed_collectives = 1;    // share of tensor parallelism's collectives that no product hides
  double step_start = 0;             // seconds of an update beside all else
};

// Threads of a rank where devices are CPUs, whose clusters say how many `cores` they have; else 0. UserError as
// constants_of().
int cpu_threads(const Cluster& cluster);

// UserError that lists the constants of the cluster that there are none of, or that are out of their range.
CostConstants constants_of(const Cluster& cluster);

// All constants with their sources: the cluster's, and defaults for the others.
std::vector<Constant> all_constants(const Cluster& cluster);

}  // namespace teratron::plan
