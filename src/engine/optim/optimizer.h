// Optimizer: updates weights from gradients. It declares the tensors that it keeps of each parameter (its slots) and
// the workspace of an update. The code that allocates, shards, saves, loads and counts them reads the slots and knows
// no optimizer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/mesh.h"
#include "nn/carver.h"
#include "nn/parameter.h"
#include "ops/backend.h"
#include "ops/working_memory.h"

namespace teratron {

struct UpdateStep {
  double learning_rate = 0;
  std::int64_t update = 1;    // number of the update, counted from 1
  double gradient_norm = 0;   // as gradient_norm() returns it
  double gradient_scale = 1;  // of gradients and norm: 1 / loss scale
  std::uint64_t seed = 0;     // of rounding by chance
};

// The memory of an update that holds nothing from one to the next.
struct UpdateMemory {
  std::int64_t bytes = 0;
  std::vector<WorkShapes::Product> products;  // the largest that are multiplied, for a CPU's working memory
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // The slots of a parameter, without memory, in the order of checkpoints. `compute`: the back end's compute type.
  virtual std::vector<OptimizerSlot> slots(const Parameter& parameter, DType compute) const = 0;

  // The memory of an update of these parameters, which are one rank's. Follows from plain values, as all plans do:
  // shapes, Parameter::group and Parameter::sharding.
  virtual UpdateMemory memory(std::span<Parameter* const> /*parameters*/, DType /*compute*/) const { return {}; }

  // Updates the elements that this rank keeps the state of (own_shard) from clipped gradients, which may be
  // overwritten. All ranks of the mesh call it, each with the parameters that it holds, in the order of Model::visit.
  // `workspace`: memory().bytes.
  virtual void update(Backend& backend, const Mesh& mesh, std::span<Parameter* const> parameters,
                      const UpdateStep& step, Carver workspace) const = 0;
};

// L2 norm of all gradients of the model, the same on all ranks. Each rank passes the parameters it holds; shared ones
// count once. Infinite or NaN on every rank if any gradient is. `extra_sums` are summed over the ranks of the model in
// the same message.
double gradient_norm(Backend& backend, std::span<Parameter* const> parameters, const Mesh& mesh,
                     std::span<double> extra_sums = {});

// Factor of the gradients such that their global norm is at most `clip` (0: no limit), step.gradient_scale included.
double clipped_scale(const UpdateStep& step, double clip);

}  // namespace teratron
