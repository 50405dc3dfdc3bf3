// cvt, cvta and mov.
#include <algorithm>
#include <cmath>

#include "base/dtype.h"
#include "emulated_gpu/ptx/block.h"
#include "emulated_gpu/ptx/lane_functions.h"

namespace teratron::emulated::ptx {
namespace {

using i8 = std::int8_t;
using u8 = std::uint8_t;
using i16 = std::int16_t;
using u16 = std::uint16_t;
using i32 = std::int32_t;
using u32 = std::uint32_t;
using i64 = std::int64_t;
using u64 = std::uint64_t;

constexpr auto kSame = [](auto a) { return a; };
constexpr auto kFromHalf = [](u16 a) { return f16_to_float(a); };
constexpr auto kToHalf = [](float a) { return float_to_f16(a); };
constexpr auto kToPairOfBf16 = [](float high, float low) {
  return u32{float_to_bf16(high)} << 16 | float_to_bf16(low);
};
constexpr auto kSaturate = [](float a) { return a > 0 ? std::min(a, 1.0F) : 0.0F; };  // NaN becomes 0
constexpr auto kToWindow = [](u64 a) { return a + kSharedWindow; };
constexpr auto kFromWindow = [](u64 a) { return a - kSharedWindow; };
constexpr auto kToParameters = [](u64 a) { return a + kParameterWindow; };
constexpr auto kJoin16 = [](u16 low, u16 high) { return u32{high} << 16 | low; };
constexpr auto kJoin32 = [](u32 low, u32 high) { return u64{high} << 32 | low; };

template <class T>
constexpr auto kLowPart = [](u64 a) { return static_cast<T>(a); };

// Between integers: sign or zeros follow the source's type, whose register may be wider (the decoder's ".wide").
template <class To, class... From>
void add_integers_to(Opcodes& opcodes) {
  ((opcodes["cvt" + suffix<To>() + suffix<From>()] = lane_function<kSame, To, From>()), ...);
  ((opcodes["cvt" + suffix<To>() + suffix<From>() + ".wide"] = lane_function<kLowPart<From>, To, u64>()), ...);
}
template <class... From>
void add_integers_from(Opcodes& opcodes) {
  add_integers_to<u16, From...>(opcodes);
  add_integers_to<i16, From...>(opcodes);
  add_integers_to<u32, From...>(opcodes);
  add_integers_to<i32, From...>(opcodes);
  add_integers_to<u64, From...>(opcodes);
  add_integers_to<i64, From...>(opcodes);
}

template <class... From>
void add_floats_of_integers(Opcodes& opcodes) {
  ((opcodes["cvt.rn.f32" + suffix<From>()] = lane_function<kSame, float, From>()), ...);
  ((opcodes["cvt.rn.f64" + suffix<From>()] = lane_function<kSame, double, From>()), ...);
}

template <class T>
void split(Block&, Warp& warp, const Instruction& instruction, LaneMask mask) {
  using Half = std::conditional_t<kIsWide<T>, u32, u16>;
  const Lanes<T> whole = read<T>(warp, instruction.rows[2]);
  Lanes<Half> low, high;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    low[lane] = static_cast<Half>(whole[lane]);
    high[lane] = static_cast<Half>(whole[lane] >> (8 * sizeof(Half)));
  }
  write(warp, instruction.rows[0], mask, low);
  write(warp, instruction.rows[1], mask, high);
}

void read_special_register(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  Lanes<u32> values;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    values[lane] = block.special_register(instruction.offset, warp, lane);
  }
  write(warp, instruction.rows[0], mask, values);
}

}  // namespace

void add_conversions(Opcodes& opcodes) {
  add_integers_from<u8, i8, u16, i16, u32, i32, u64, i64>(opcodes);
  add_floats_of_integers<u16, i16, u32, i32, u64, i64>(opcodes);
  opcodes["cvt.f64.f32"] = lane_function<kSame, double, float>();
  opcodes["cvt.rn.f32.f64"] = lane_function<kSame, float, double>();
  opcodes["cvt.f32.f16"] = lane_function<kFromHalf, float, u16>();
  opcodes["cvt.rn.f16.f32"] = lane_function<kToHalf, u16, float>();
  opcodes["cvt.rn.bf16x2.f32"] = lane_function<kToPairOfBf16, u32, float, float>();
  opcodes["cvt.sat.f32.f32"] = lane_function<kSaturate, float, float>();
  opcodes["cvta.to.global.u64"] = lane_function<kSame, u64, u64>();
  opcodes["cvta.global.u64"] = lane_function<kSame, u64, u64>();
  opcodes["cvta.param.u64"] = lane_function<kToParameters, u64, u64>();
  opcodes["cvta.shared.u64"] = lane_function<kToWindow, u64, u64>();
  opcodes["cvta.to.shared.u64"] = lane_function<kFromWindow, u64, u64>();
  for (const char* const type : {".b16", ".u16", ".s16", ".b32", ".u32", ".s32", ".f32", ".pred"}) {
    opcodes[std::string("mov") + type] = lane_function<kSame, u32, u32>();
  }
  for (const char* const type : {".b64", ".u64", ".s64", ".f64"}) {
    opcodes[std::string("mov") + type] = lane_function<kSame, u64, u64>();
  }
  // The decoder gives these names to what mov does with pairs and special registers.
  opcodes["join.b32"] = lane_function<kJoin16, u32, u16, u16>();
  opcodes["join.b64"] = lane_function<kJoin32, u64, u32, u32>();
  opcodes["split.b32"] = {.run = split<u32>, .widths = {4, 4}};
  opcodes["split.b64"] = {.run = split<u64>, .widths = {4, 8}};
  opcodes["special.u32"] = {.run = read_special_register};
}

}  // namespace teratron::emulated::ptx
