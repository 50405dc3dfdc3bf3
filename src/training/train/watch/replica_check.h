// Comparison of what several ranks hold in common, bit for bit.
#pragma once

#include <cstdint>

#include "executor/executor.h"

namespace teratron {

class ReplicaCheck {
 public:
  // The run begins after this iteration, with equal replicas.
  void begin_at(std::int64_t iteration) { were_equal_ = iteration; }

  // Compares the weights of data-parallel copies, of tensor-parallel ranks where a parameter is not split or has
  // replicas, and of the first and the last stage, which share the tied embedding; masters and the optimizer's slots
  // too unless they are sharded. All ranks of the mesh call it. EnvironmentError, on all of them: "rank 3 holds other
  // bits of 'layers.0.norm1.weight' than ranks 0, 1, 2", for the first tensor that differs. Memory: a few MB; where the
  // weights lie on a device, all of them are read.
  void require_equal(Executor& executor, std::int64_t iteration);

 private:
  std::int64_t were_equal_ = 0;  // after this iteration
};

}  // namespace teratron
