// exp, powers of two, GELU and tanh on float vectors. Compiled once per target, so the include guard toggles.
#if defined(TERATRON_OPS_CPU_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TERATRON_OPS_CPU_MATH_INL_H_
#undef TERATRON_OPS_CPU_MATH_INL_H_
#else
#define TERATRON_OPS_CPU_MATH_INL_H_
#endif

#include "hwy/highway.h"
#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {

// x, or the bound where it lies beyond it; NaN stays NaN.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3  // whose Min and Max return their second argument if either is NaN
HWY_INLINE FloatVector at_least_or_nan(float least, FloatVector x) { return hn::Max(constant(least), x); }
HWY_INLINE FloatVector at_most_or_nan(FloatVector x, float most) { return hn::Min(constant(most), x); }
#else  // others return the one that is a number
HWY_INLINE FloatVector at_least_or_nan(float least, FloatVector x) {
  return hn::IfThenElse(hn::Lt(x, constant(least)), constant(least), x);
}
HWY_INLINE FloatVector at_most_or_nan(FloatVector x, float most) {
  return hn::IfThenElse(hn::Lt(constant(most), x), constant(most), x);
}
#endif

// e^x = 2^n e^r with n = round(x / ln 2) and |r| <= ln(2) / 2, e^r by a minimax polynomial of degree 6. Within 2 units
// in the last place from -87.3 to 88; below -87.6 the result is 0, above 88.4 infinity. NaN gives NaN.
HWY_INLINE FloatVector exp(FloatVector x) {
  const hn::RebindToSigned<FloatTag> integers;
  x = at_least_or_nan(-88.0F, at_most_or_nan(x, 89.0F));
  // Adding 1.5 * 2^23 leaves the nearest integer in the low bits.
  const FloatVector shifter = constant(12582912.0F);
  const FloatVector shifted = hn::MulAdd(x, constant(1.44269504F), shifter);
  const FloatVector n = hn::Sub(shifted, shifter);
  FloatVector r = hn::NegMulAdd(n, constant(0.693145752F), x);
  r = hn::NegMulAdd(n, constant(1.42860677e-6F), r);
  const FloatVector one = constant(1.0F);
  FloatVector p = constant(1.39504916e-3F);
  p = hn::MulAdd(p, r, constant(8.3688898e-3F));
  p = hn::MulAdd(p, r, constant(4.1666206e-2F));
  p = hn::MulAdd(p, r, constant(1.66665182e-1F));
  p = hn::MulAdd(p, r, constant(0.5F));
  p = hn::MulAdd(hn::MulAdd(p, r, one), r, one);
  const auto exponent = hn::ShiftLeft<23>(hn::Add(hn::BitCast(integers, shifted), hn::Set(integers, 127)));
  return hn::Mul(p, hn::BitCast(FloatTag(), exponent));
}

// 2^r for |r| <= 1 / 2, a minimax polynomial of degree 6.
HWY_INLINE FloatVector exp2_of_fraction(FloatVector r) {
  FloatVector p = constant(1.55931892e-4F);
  p = hn::MulAdd(p, r, constant(1.34053477e-3F));
  p = hn::MulAdd(p, r, constant(9.61758289e-3F));
  p = hn::MulAdd(p, r, constant(5.55030033e-2F));
  p = hn::MulAdd(p, r, constant(2.40226552e-1F));
  p = hn::MulAdd(p, r, constant(6.93147242e-1F));
  return hn::MulAdd(p, r, constant(1.0F));
}

// 2^x = 2^n 2^r with n = round(x), for x below 127. Within 0.9 units in the last place from -126 on where multiply-adds
// are fused; below -127 the result is 0. NaN gives NaN.
HWY_INLINE FloatVector exp2(FloatVector x) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_ZEN4  // instructions that Highway has no names for
  const FloatVector r{_mm512_reduce_ps(x.raw, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  // Results below 2^-126 would be subnormal, which takes processors hundreds of cycles.
  const __mmask16 is_normal = _mm512_cmp_ps_mask(x.raw, constant(-126.0F).raw, _CMP_NLT_UQ);
  return FloatVector{_mm512_maskz_scalef_ps(is_normal, exp2_of_fraction(r).raw, hn::Sub(x, r).raw)};
#else
  const hn::RebindToSigned<FloatTag> integers;
  x = at_least_or_nan(-127.0F, x);
  // Adding 1.5 * 2^23 leaves the nearest integer in the low bits, here plus the bias of exponents.
  const FloatVector shifter = constant(12582912.0F + 127.0F);
  const FloatVector shifted = hn::Add(x, shifter);
  const FloatVector r = hn::Sub(x, hn::Sub(shifted, shifter));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(integers, shifted));
  return hn::Mul(exp2_of_fraction(r), hn::BitCast(FloatTag(), exponent));
#endif
}

// A row's first `seen` scores become 2^(factor * score - shift), the rest of their last vector zero. Returns their sum,
// a part in each lane. The row is aligned to a vector and its last vector whole.
HWY_INLINE FloatVector exponentiate_row(float* row, std::int64_t seen, float factor, float shift) {
  const FloatTag d;
  const FloatVector factors = constant(factor), shifts = constant(shift);
  FloatVector sum0 = constant(0), sum1 = sum0;
  std::int64_t c = 0;
  for (; c + 2 * kFloatLanes <= seen; c += 2 * kFloatLanes) {
    const FloatVector p0 = exp2(hn::MulSub(hn::Load(d, row + c), factors, shifts));
    const FloatVector p1 = exp2(hn::MulSub(hn::Load(d, row + c + kFloatLanes), factors, shifts));
    hn::Store(p0, d, row + c);
    hn::Store(p1, d, row + c + kFloatLanes);
    sum0 = hn::Add(sum0, p0);
    sum1 = hn::Add(sum1, p1);
  }
  for (; c < seen; c += kFloatLanes) {
    const auto is_seen = hn::FirstN(d, static_cast<std::size_t>(seen - c));
    const FloatVector p = exp2(hn::MulSub(hn::Load(d, row + c), factors, shifts));
    const FloatVector kept = hn::IfThenElseZero(is_seen, p);
    hn::Store(kept, d, row + c);
    sum0 = hn::Add(sum0, kept);
  }
  return hn::Add(sum0, sum1);
}

// A value of an activation and of its derivative.
struct ValueAndSlope {
  FloatVector value, slope;
};

// GELU's tanh form (Hendrycks and Gimpel, arXiv 1606.08415): u (1 + tanh z) / 2 = u / (1 + e^-2z) with
// z = sqrt(2 / pi) (u + 0.044715 u^3).
struct GeluTanh {
  static HWY_INLINE FloatVector sigmoid(FloatVector u, FloatVector u_squared) {
    const FloatVector slope = hn::MulAdd(u_squared, constant(-0.0713548163F), constant(-1.59576912F));
    const FloatVector exponential = exp(hn::Mul(u, slope));
    return hn::Div(constant(1.0F), hn::Add(constant(1.0F), exponential));
  }
  static HWY_INLINE FloatVector value(FloatVector u) { return hn::Mul(u, sigmoid(u, hn::Mul(u, u))); }
  static HWY_INLINE ValueAndSlope value_and_slope(FloatVector u) {
    const FloatVector u_squared = hn::Mul(u, u);
    const FloatVector s = sigmoid(u, u_squared);
    const FloatVector gelu = hn::Mul(u, s);
    const FloatVector inner = hn::MulAdd(u_squared, constant(0.214064449F), constant(1.59576912F));
    return {gelu, hn::MulAdd(hn::Mul(gelu, hn::Sub(constant(1.0F), s)), inner, s)};
  }
};

// GELU itself, u P(N(0,1) <= u). The tail P(N(0,1) <= -|u|) = t e^(P(t) - u^2 / 2) / 2 with t = 1 / (1 + |u| / sqrt 8)
// and a minimax polynomial P, so that small tails keep their relative accuracy (the form of Numerical Recipes' erfc).
struct GeluErf {
  static HWY_INLINE FloatVector cumulative(FloatVector u, FloatVector half_square) {
    const FloatVector one = constant(1.0F);
    const FloatVector t = hn::Div(one, hn::MulAdd(hn::Abs(u), constant(0.353553391F), one));
    FloatVector p = constant(0.162683576F);
    for (const float coefficient : {-0.777039945F, 1.38178194F, -0.993528962F, 0.163262501F, -0.1265627F, 0.0774093121F,
                                    0.377860487F, 0.999629319F, -1.26549554F}) {
      p = hn::MulAdd(p, t, constant(coefficient));
    }
    const FloatVector tail = hn::Mul(hn::Mul(constant(0.5F), t), exp(hn::Sub(p, half_square)));
    return hn::IfThenElse(hn::Lt(u, hn::Zero(FloatTag())), tail, hn::Sub(one, tail));
  }
  static HWY_INLINE FloatVector value(FloatVector u) {
    return hn::Mul(u, cumulative(u, hn::Mul(constant(0.5F), hn::Mul(u, u))));
  }
  static HWY_INLINE ValueAndSlope value_and_slope(FloatVector u) {
    const FloatVector half_square = hn::Mul(constant(0.5F), hn::Mul(u, u));
    const FloatVector phi = cumulative(u, half_square);
    const FloatVector density = hn::Mul(constant(0.398942280F), exp(hn::Neg(half_square)));
    return {hn::Mul(u, phi), hn::MulAdd(u, density, phi)};
  }
};

// SiLU, u / (1 + e^-u).
struct Silu {
  static HWY_INLINE FloatVector sigmoid(FloatVector u) {
    return hn::Div(constant(1.0F), hn::Add(constant(1.0F), exp(hn::Neg(u))));
  }
  static HWY_INLINE FloatVector value(FloatVector u) { return hn::Mul(u, sigmoid(u)); }
  static HWY_INLINE ValueAndSlope value_and_slope(FloatVector u) {
    const FloatVector s = sigmoid(u), silu = hn::Mul(u, s);
    return {silu, hn::MulAdd(silu, hn::Sub(constant(1.0F), s), s)};
  }
};

// (1 - e^-2|x|) / (1 + e^-2|x|) with the sign of x. Near 0, where that difference would lose its digits, the series of
// tanh, whose next term is below a tenth of a unit in the last place there.
struct Tanh {
  static HWY_INLINE FloatVector value(FloatVector x) {
    const FloatVector one = constant(1.0F), size = hn::Abs(x), square = hn::Mul(x, x);
    const FloatVector exponential = exp(hn::Mul(constant(-2.0F), size));
    const FloatVector far = hn::Div(hn::Sub(one, exponential), hn::Add(one, exponential));
    FloatVector p = constant(0.021869488F);
    for (const float coefficient : {-0.053968254F, 0.13333333F, -0.33333334F}) {
      p = hn::MulAdd(p, square, constant(coefficient));
    }
    const FloatVector near = hn::MulAdd(hn::Mul(p, square), x, x);
    return hn::IfThenElse(hn::Lt(size, constant(0.25F)), near, hn::CopySign(far, x));
  }
  static HWY_INLINE ValueAndSlope value_and_slope(FloatVector x) {
    const FloatVector tanh = value(x);
    return {tanh, hn::NegMulAdd(tanh, tanh, constant(1.0F))};
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
