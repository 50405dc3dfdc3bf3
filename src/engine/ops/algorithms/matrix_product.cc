#include "ops/algorithms/matrix_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace teratron {

bool overlap(const TensorRef& x, const TensorRef& y) {
  if (!x || !y) return false;
  const auto x_begin = reinterpret_cast<std::uintptr_t>(x.data), y_begin = reinterpret_cast<std::uintptr_t>(y.data);
  return x_begin < y_begin + static_cast<std::uintptr_t>(y.bytes()) &&
         y_begin < x_begin + static_cast<std::uintptr_t>(x.bytes());
}

bool MatrixProduct::can_be_repeated() const {
  return !accumulate && !overlap(c, a) && !overlap(c, b) && !overlap(c, bias) && !overlap(c, gelu_input);
}

std::uint32_t alignment_of(const TensorRef& view) {
  const auto address = reinterpret_cast<std::uintptr_t>(view.data);
  const std::uintptr_t lowest = address & (~address + 1);
  return static_cast<std::uint32_t>(std::min<std::uintptr_t>(lowest, 16));
}

MatrixProductKey key_of(const MatrixProduct& product, bool tf32) {
  return {.c_dtype = product.c.dtype,
          .dtype = product.a.dtype,
          .m = product.c.dim(0),
          .n = product.c.dim(1),
          .k = product.terms(),
          .transpose_a = product.transpose_a,
          .transpose_b = product.transpose_b,
          .accumulate = product.accumulate,
          .tf32 = tf32 && product.a.dtype == DType::kF32,
          .a_alignment = alignment_of(product.a),
          .b_alignment = alignment_of(product.b),
          .c_alignment = alignment_of(product.c),
          .bias_alignment = alignment_of(product.bias),
          .before_gelu_alignment = alignment_of(product.before_gelu),
          .gelu_alignment = alignment_of(product.gelu_input),
          .bias_gradient_alignment = alignment_of(product.bias_gradient)};
}

std::string text_of(const MatrixProductKey& key) {
  std::string text =
      fmt::format("{} to {}, m {} n {} k {}, a {} b {}, aligned to {} {} {}", name_of(key.dtype), name_of(key.c_dtype),
                  key.m, key.n, key.k, key.transpose_a ? "transposed" : "plain",
                  key.transpose_b ? "transposed" : "plain", key.a_alignment, key.b_alignment, key.c_alignment);
  if (key.accumulate) text += ", accumulate";
  if (key.bias_alignment > 0) text += fmt::format(", bias aligned to {}", key.bias_alignment);
  if (key.before_gelu_alignment > 0) text += fmt::format(", gelu aligned to {}", key.before_gelu_alignment);
  if (key.gelu_alignment > 0) text += fmt::format(", gelu gradient aligned to {}", key.gelu_alignment);
  if (key.bias_gradient_alignment > 0)
    text += fmt::format(", bias gradient aligned to {}", key.bias_gradient_alignment);
  if (key.tf32) text += ", tf32";
  return text;
}

}  // namespace teratron
