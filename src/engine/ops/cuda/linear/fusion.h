// How much of an operation is computed within its matrix product, in the epilogue of the library's kernel, and how much
// by passes of our own. An epilogue saves a pass over memory, and some slow their product down by more than that. So
// the whole operation is timed each way, once on a machine, as the algorithms of one product are.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <span>
#include <string>

#include "ops/algorithms/algorithm_cache.h"

namespace teratron::cuda {

// What the product does besides. kGelu includes the bias, where there is one.
enum class Fusion : std::uint8_t { kNothing, kBias, kGelu, kGeluGradient, kBiasGradient };

// One call of an operation.
class FusibleOperation {
 public:
  virtual ~FusibleOperation() = default;
  // The ways to compute it, the usual ones first.
  virtual std::span<const Fusion> fusions() const = 0;
  // Whether the library has the product, and there is the memory that passes hand sums on in.
  virtual bool can_compute(Fusion fusion) = 0;
  // Queues all of it, with outputs where no later operation needs what is there. False where the library lacks the
  // product, EnvironmentError where memory is short or a library fails.
  virtual bool rehearse(Fusion fusion) = 0;
};

// The way that the cache keeps for `key`, else the fastest, which it then keeps: the same for every rank and later run.
// Among equals, the first of fusions(). Where only one can be rehearsed, it is returned and not kept.
Fusion choose_fusion(const std::string& key, cudaStream_t stream, FusibleOperation& operation, AlgorithmCache& cache);

}  // namespace teratron::cuda
