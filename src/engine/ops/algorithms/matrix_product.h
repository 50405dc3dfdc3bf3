// MatrixProduct: a product as back ends hand it to a library, and the properties that the choice of its algorithm
// depends on.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "tensor/tensor.h"

namespace teratron {

// c[m, n] (+)= op(a)[m, k] op(b)[k, n], plus bias[n] in every row where there is one. Contiguous, row by row; a and b
// of one type, c of that or of fp32; sums in fp32.
struct MatrixProduct {
  TensorRef c, a, b;
  bool transpose_a = false, transpose_b = false;  // then a is [k, m], b is [n, k]
  bool accumulate = false;
  // The epilogue, all of it optional and of c's type: the bias with before_gelu, else one alone.
  TensorRef bias;
  TensorRef before_gelu;  // [m, n], written: what c would be, which now is GELU (tanh form) of it, before any rounding
  TensorRef gelu_input;   // [m, n]: c is multiplied by the derivative of GELU (tanh form) there before it is stored
  TensorRef bias_gradient;  // [m], overwritten even with `accumulate`: the sums of op(a) over k

  std::int64_t terms() const { return a.dim(transpose_a ? 0 : 1); }  // k
  bool is_plain() const { return !bias && !before_gelu && !gelu_input && !bias_gradient; }
  double multiply_adds() const { return static_cast<double>(c.elements()) * static_cast<double>(terms()); }
  // Whether it may be computed several times into c: what c holds is not read, and c shares no memory with an input.
  // The other outputs share none with anything.
  bool can_be_repeated() const;
};

// Whether two views, of which either may be absent, have bytes in common.
bool overlap(const TensorRef& x, const TensorRef& y);

// Largest power of two, up to 16, that divides a view's address; 0 where there is no view. A larger one would
// distinguish products that differ in their offset in an arena alone, and so their algorithms and bits.
std::uint32_t alignment_of(const TensorRef& view);

// Properties that the choice of an algorithm depends on, on one machine.
struct MatrixProductKey {
  DType c_dtype = DType::kF32, dtype = DType::kF32;  // of c; of a and b
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, accumulate = false;
  bool tf32 = false;  // fp32 rounded to 10 bits of mantissa
  std::uint32_t a_alignment = 0, b_alignment = 0, c_alignment = 0;
  std::uint32_t bias_alignment = 0, before_gelu_alignment = 0, gelu_alignment = 0, bias_gradient_alignment = 0;
  auto operator<=>(const MatrixProductKey&) const = default;
};

MatrixProductKey key_of(const MatrixProduct& product, bool tf32);

// One line, the same for equal keys only.
std::string text_of(const MatrixProductKey& key);

}  // namespace teratron
