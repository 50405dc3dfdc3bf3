// Matrix products of the emulated GPU: what src/ops/cuda/gemm.h promises, with loops.
#include "ops/cuda/gemm.h"

#include "base/float_types.h"
#include "ops/cuda/activation.h"

namespace teratron::cuda {

struct Gemm::Library {};

Gemm::Gemm(cudaStream_t, const GemmOptions&) {}
Gemm::~Gemm() = default;

bool takes_gelu_gradient(const Product& product) {
  return reinterpret_cast<std::uintptr_t>(product.gelu_input.data) % 16 == 0;  // so that both ways are tested
}

namespace {

float value_at(const TensorRef& view, std::int64_t i) {
  return visit_floating(
      view.dtype, [&]<class T>(ElementType<T>) { return static_cast<float>(static_cast<const T*>(view.data)[i]); });
}

void store(const TensorRef& view, std::int64_t i, float value) {
  visit_floating(view.dtype, [&]<class T>(ElementType<T>) { static_cast<T*>(view.data)[i] = static_cast<T>(value); });
}

}  // namespace

void Gemm::multiply(const Product& product) {
  const std::int64_t rows = product.c.dim(0), columns = product.c.dim(1);
  const std::int64_t terms = product.terms();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t at = row * columns + column;
      float sum = product.accumulate ? value_at(product.c, at) : 0;
      for (std::int64_t k = 0; k < terms; ++k) {
        sum += value_at(product.a, product.transpose_a ? k * rows + row : row * terms + k) *
               value_at(product.b, product.transpose_b ? column * terms + k : k * columns + column);
      }
      if (product.bias) sum += value_at(product.bias, column);
      if (product.gelu_input) sum *= activate<Activation::kGeluTanh>(value_at(product.gelu_input, at)).slope;
      store(product.c, at, sum);
    }
  }
}

}  // namespace teratron::cuda
