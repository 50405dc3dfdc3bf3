// Choice of how much of an operation its matrix product computes, in the epilogue of the library's kernel; passes of
// our own compute the rest. A bias is always added there, where the library can. GELU, its derivative and the sum of a
// bias gradient save a pass over memory, but some slow their product down by more than that. A pass that follows a
// product of 16 bits reads sums of fp32, or half as many bytes of values that the product has rounded. Each candidate
// is therefore timed as a whole, once on a machine, like the algorithms of one product.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <span>
#include <string>

namespace teratron {
class AlgorithmCache;
}

namespace teratron::cuda {

// Epilogue of the product, and what the passes read. kBias and kGelu include the bias, if there is one. kRounded: no
// epilogue, and passes read the product as it is stored.
enum class Fusion : std::uint8_t { kNothing, kRounded, kBias, kGelu, kGeluGradient, kBiasGradient };

// One call of an operation.
class FusibleOperation {
 public:
  virtual ~FusibleOperation() = default;
  // Candidates, the usual ones first.
  virtual std::span<const Fusion> fusions() const = 0;
  // Passes that calls of one product may have or not, and that the choice therefore depends on; empty: there are none.
  virtual std::string passes() const { return {}; }
  // Whether the library has the product, and there is the memory that passes hand sums on in.
  virtual bool can_compute(Fusion fusion) = 0;
  // Queues all of it, into outputs that no later operation reads. False: the library lacks the product.
  // EnvironmentError: memory is short or a library fails.
  virtual bool rehearse(Fusion fusion) = 0;
};

// Candidate that the cache keeps for `key`, else the fastest, which it then keeps: the same for every rank and later
// run. Among equals, the first of fusions(). Where only one can be rehearsed, it is returned and not kept.
Fusion choose_fusion(const std::string& key, cudaStream_t stream, FusibleOperation& operation, AlgorithmCache& cache);

}  // namespace teratron::cuda
