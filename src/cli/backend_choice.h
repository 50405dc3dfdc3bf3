// Which back end computes: its flags, and one for each rank.
#pragma once

#include <memory>

#include "cli/ranks.h"
#include "ops/backend.h"
#include "train/config.h"

namespace teratron {

struct BackendChoice {
  BackendKind kind = BackendKind::kCpu;
  bool guard_memory = false;     // of the CPU's
  bool cudnn_attention = false;  // of GPUs; only training computes in 16 bits
};

void add_backend_fields(FieldList& list, BackendChoice& choice);

// Ranks of one host take its GPUs in turn. Every rank of the world calls it. EnvironmentError: no such device.
std::unique_ptr<Backend> make_backend(const BackendChoice& choice, DType compute_dtype, const Rank& rank);

}  // namespace teratron
