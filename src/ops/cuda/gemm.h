// Matrix products of the CUDA back end, by cuBLASLt. tests/emulated_gpu has another gemm.cc that does them with loops.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <memory>

#include "tensor/tensor.h"

namespace teratron::cuda {

// c[m, n] (+)= op(a)[m, k] op(b)[k, n], plus bias[n] in every row where there is one. Contiguous, row by row; a and b
// of one type, c of that or of fp32; sums in fp32.
struct Product {
  TensorRef c, a, b;
  bool transpose_a = false, transpose_b = false;  // then a is [k, m], b is [n, k]
  bool accumulate = false;
  TensorRef bias;  // of c's type, optional
  TensorRef
      gelu_input;  // [m, n], optional: c is multiplied by the derivative of GELU (tanh form) there before it is stored
};

// Whether there is a way to do that in the product: sizes and places must be multiples of 16 bytes.
bool takes_gelu_gradient(const Product& product);

class Gemm {
 public:
  // tf32: products of fp32 inputs rounded to 10 bits of mantissa, several times as fast.
  Gemm(cudaStream_t stream, bool tf32);
  ~Gemm();
  // EnvironmentError where the library has no way to do it.
  void multiply(const Product& product);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace teratron::cuda
