#include <cmath>
#include <limits>

#include "emulated_gpu/ptx/block.h"
#include "emulated_gpu/ptx/lane_functions.h"

namespace teratron::emulated::ptx {
namespace {

using i16 = std::int16_t;
using u16 = std::uint16_t;
using i32 = std::int32_t;
using u32 = std::uint32_t;
using i64 = std::int64_t;
using u64 = std::uint64_t;

constexpr auto kAdd = [](auto a, auto b) { return wrapping(a) + wrapping(b); };
constexpr auto kSubtract = [](auto a, auto b) { return wrapping(a) - wrapping(b); };
constexpr auto kMultiply = [](auto a, auto b) { return wrapping(a) * wrapping(b); };
constexpr auto kMultiplyAdd = [](auto a, auto b, auto c) { return wrapping(a) * wrapping(b) + wrapping(c); };
constexpr auto kDivide = [](auto a, auto b) { return a / b; };
constexpr auto kFused = [](auto a, auto b, auto c) { return std::fma(a, b, c); };
constexpr auto kSquareRoot = [](auto a) { return std::sqrt(a); };

template <class T>
constexpr auto kWideProduct = [](auto a, auto b) { return static_cast<T>(a) * static_cast<T>(b); };
template <class T>
constexpr auto kHighProduct = [](auto a, auto b) { return static_cast<T>(a) * static_cast<T>(b) >> (8 * sizeof(a)); };

// NaN gives way to a number, and -0 is less than 0.
template <class T>
T least(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a == b) return std::signbit(a) ? a : b;
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
  }
  return a < b ? a : b;
}
template <class T>
T greatest(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a == b) return std::signbit(a) ? b : a;
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
  }
  return a > b ? a : b;
}
constexpr auto kMinimum = [](auto a, auto b) { return least(a, b); };
constexpr auto kMaximum = [](auto a, auto b) { return greatest(a, b); };

constexpr auto kNegate = [](auto a) {
  if constexpr (std::is_integral_v<decltype(a)>) {
    return 0 - wrapping(a);
  } else {
    return -a;
  }
};
constexpr auto kMagnitude = [](auto a) {
  if constexpr (std::is_integral_v<decltype(a)>) {
    return a < 0 ? 0 - wrapping(a) : wrapping(a);
  } else {
    return std::abs(a);
  }
};

// a * b + c, rounded down. The product is exact in double, and so is its sum with c as two doubles (Knuth's).
constexpr auto kFusedDown = [](float a, float b, float c) {
  const double product = static_cast<double>(a) * b, sum = product + c;
  const double part = sum - product, rest = (product - (sum - part)) + (c - part);
  const auto nearest = static_cast<float>(sum);
  const bool is_above = static_cast<double>(nearest) > sum || (static_cast<double>(nearest) == sum && rest < 0);
  return is_above ? std::nextafterf(nearest, -std::numeric_limits<float>::infinity()) : nearest;
};

float without_subnormals(float value) {
  return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0F, value) : value;
}
constexpr auto kPowerOfTwo = [](float a) { return without_subnormals(std::exp2(without_subnormals(a))); };
constexpr auto kFlushedReciprocal = [](float a) { return without_subnormals(1.0F / without_subnormals(a)); };
constexpr auto kReciprocal = [](auto a) { return 1 / a; };
constexpr auto kCopySign = [](auto a, auto b) { return std::copysign(b, a); };

template <class T, bool kRemainder>
void divide(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  const Lanes<T> a = read<T>(warp, instruction.rows[1]), b = read<T>(warp, instruction.rows[2]);
  Lanes<T> results = {};
  for_each_lane(mask, [&](unsigned lane) {
    if (b[lane] == 0) block.fault("divides an integer by zero", warp, lane, instruction);
    if constexpr (std::is_signed_v<T>) {
      if (b[lane] == -1) {  // of the least integer, too
        results[lane] = kRemainder ? 0 : static_cast<T>(0 - wrapping(a[lane]));
        return;
      }
    }
    results[lane] = kRemainder ? a[lane] % b[lane] : a[lane] / b[lane];
  });
  write(warp, instruction.rows[0], mask, results);
}

template <class... T>
void add_divisions(Opcodes& opcodes) {
  ((opcodes["div" + suffix<T>()] = {.run = divide<T, false>, .widths = {kWidth<T>, kWidth<T>, kWidth<T>}}), ...);
  ((opcodes["rem" + suffix<T>()] = {.run = divide<T, true>, .widths = {kWidth<T>, kWidth<T>, kWidth<T>}}), ...);
}

}  // namespace

void add_arithmetic(Opcodes& opcodes) {
  add_binary<kAdd, u16, i16, u32, i32, u64, i64, float, double>(opcodes, "add");
  add_binary<kAdd, float, double>(opcodes, "add.rn");
  add_binary<kSubtract, u16, i16, u32, i32, u64, i64, float, double>(opcodes, "sub");
  add_binary<kSubtract, float, double>(opcodes, "sub.rn");
  add_binary<kMultiply, float, double>(opcodes, "mul");
  add_binary<kMultiply, float, double>(opcodes, "mul.rn");
  add_binary<kMultiply, u16, i16, u32, i32, u64, i64>(opcodes, "mul.lo");
  opcodes["mul.wide.u16"] = lane_function<kWideProduct<u32>, u32, u16, u16>();
  opcodes["mul.wide.s16"] = lane_function<kWideProduct<i32>, i32, i16, i16>();
  opcodes["mul.wide.u32"] = lane_function<kWideProduct<u64>, u64, u32, u32>();
  opcodes["mul.wide.s32"] = lane_function<kWideProduct<i64>, i64, i32, i32>();
  opcodes["mul.hi.u32"] = lane_function<kHighProduct<u64>, u32, u32, u32>();
  opcodes["mul.hi.s32"] = lane_function<kHighProduct<i64>, i32, i32, i32>();
  add_ternary<kMultiplyAdd, u16, i16, u32, i32, u64, i64>(opcodes, "mad.lo");
  add_ternary<kFused, float, double>(opcodes, "fma.rn");
  opcodes["fma.rm.f32"] = lane_function<kFusedDown, float, float, float, float>();
  add_divisions<u16, i16, u32, i32, u64, i64>(opcodes);
  add_binary<kDivide, float, double>(opcodes, "div.rn");
  add_binary<kMinimum, u16, i16, u32, i32, u64, i64, float, double>(opcodes, "min");
  add_binary<kMaximum, u16, i16, u32, i32, u64, i64, float, double>(opcodes, "max");
  add_unary<kNegate, i16, i32, i64, float, double>(opcodes, "neg");
  add_unary<kMagnitude, i16, i32, i64, float, double>(opcodes, "abs");
  add_unary<kSquareRoot, float, double>(opcodes, "sqrt.rn");
  add_unary<kReciprocal, float, double>(opcodes, "rcp.rn");
  opcodes["rcp.approx.ftz.f32"] = lane_function<kFlushedReciprocal, float, float>();
  opcodes["ex2.approx.ftz.f32"] = lane_function<kPowerOfTwo, float, float>();
  add_binary<kCopySign, float, double>(opcodes, "copysign");
}

}  // namespace teratron::emulated::ptx
