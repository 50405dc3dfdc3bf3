// Matrix products of the CUDA back end, by cuBLASLt, and by cuBLAS for the odd ones that cuBLASLt has no algorithm for.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string_view>

#include "ops/algorithms/matrix_product.h"
#include "ops/cuda/linear/fusion.h"

namespace teratron::cuda {

using Product = MatrixProduct;

struct MemoryMeter;

struct GemmOptions {
  bool tf32 = false;  // products of fp32 inputs rounded to 10 bits of mantissa, several times as fast
  // Large products take the algorithm that is fastest on this device, the same in every run
  // (ops/algorithm_choice.h); else, as small ones do, the one that the library thinks best.
  bool timing = true;
  double timed_from = 1e8;  // multiply-adds
  std::string_view device;  // its name
};

class Gemm {
 public:
  // `meter` counts the memory that it takes for itself.
  Gemm(cudaStream_t stream, const GemmOptions& options, MemoryMeter* meter = nullptr);
  ~Gemm();
  // Queues a product without an epilogue. The first of its kind may wait for the stream. EnvironmentError: the
  // libraries fail.
  void multiply(const Product& product);
  // Queues a product with an epilogue, in one kernel. False: the library has none for it, and nothing was computed.
  [[nodiscard]] bool try_fused(const Product& product);
  bool can_fuse(const Product& product);
  // Chooses the epilogue of an operation whose product, with its longest epilogue, is `whole`: by timing where `whole`
  // is large and timing is on, else the first candidate. The first call of a kind computes it several times.
  Fusion choose(const Product& whole, FusibleOperation& operation);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace teratron::cuda
