// Matrix products of the CUDA back end, by cuBLASLt, and by cuBLAS for the odd ones that cuBLASLt has no algorithm for.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string_view>

#include "ops/algorithms/matrix_product.h"

namespace teratron::cuda {

using Product = MatrixProduct;

struct MemoryMeter;

struct GemmOptions {
  bool tf32 = false;  // products of fp32 inputs rounded to 10 bits of mantissa, several times as fast
  // Large products take the algorithm that is fastest on this device, the same in every run
  // (ops/algorithm_choice.h); else, as small ones do, the one that the library thinks best.
  bool timing = true;
  double timed_from = 1e8;  // multiply-adds; below, most of the time is the launch
  std::string_view device;  // its name
};

class Gemm {
 public:
  // `meter` counts the memory that it takes for itself.
  Gemm(cudaStream_t stream, const GemmOptions& options, MemoryMeter* meter = nullptr);
  ~Gemm();
  // Of a product with neither bias nor gelu_input. EnvironmentError where the libraries fail. The first product of its
  // kind may wait for the stream.
  void multiply(const Product& product);
  // Of a product with one of them, in one kernel. False where the library has none for it: nothing was computed.
  [[nodiscard]] bool try_fused(const Product& product);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace teratron::cuda
