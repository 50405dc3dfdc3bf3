// Predicates (setp), and choices by them (selp).
#include <cmath>

#include "emulated_gpu/ptx/lane_functions.h"

namespace teratron::emulated::ptx {
namespace {

constexpr auto kEqual = [](auto a, auto b) { return a == b; };
constexpr auto kLess = [](auto a, auto b) { return a < b; };
constexpr auto kAtMost = [](auto a, auto b) { return a <= b; };
constexpr auto kGreater = [](auto a, auto b) { return a > b; };
constexpr auto kAtLeast = [](auto a, auto b) { return a >= b; };
// False of NaN, as all ordered comparisons are.
constexpr auto kDiffer = [](auto a, auto b) {
  if constexpr (std::is_floating_point_v<decltype(a)>) return a < b || a > b;
  return a != b;
};
constexpr auto kAreNumbers = [](auto a, auto b) { return !std::isnan(a) && !std::isnan(b); };
template <auto kComparison>
constexpr auto kOpposite = [](auto a, auto b) { return !kComparison(a, b); };
constexpr auto kSelect = [](auto a, auto b, std::uint32_t first) { return first != 0 ? a : b; };

template <auto kComparison, class... T>
void add(Opcodes& opcodes, const std::string& name) {
  ((opcodes["setp." + name + suffix<T>()] = lane_function<kComparison, bool, T, T>()), ...);
}

template <class... T>
void add_ordered(Opcodes& opcodes) {
  add<kEqual, T...>(opcodes, "eq");
  add<kDiffer, T...>(opcodes, "ne");
  add<kLess, T...>(opcodes, "lt");
  add<kAtMost, T...>(opcodes, "le");
  add<kGreater, T...>(opcodes, "gt");
  add<kAtLeast, T...>(opcodes, "ge");
}

// True of NaN.
template <class... T>
void add_unordered(Opcodes& opcodes) {
  add<kOpposite<kDiffer>, T...>(opcodes, "equ");
  add<kOpposite<kEqual>, T...>(opcodes, "neu");
  add<kOpposite<kAtLeast>, T...>(opcodes, "ltu");
  add<kOpposite<kGreater>, T...>(opcodes, "leu");
  add<kOpposite<kAtMost>, T...>(opcodes, "gtu");
  add<kOpposite<kLess>, T...>(opcodes, "geu");
  add<kOpposite<kAreNumbers>, T...>(opcodes, "nan");
  add<kAreNumbers, T...>(opcodes, "num");
}

template <class... T>
void add_bits(Opcodes& opcodes) {
  ((opcodes["setp.eq" + bits_suffix<T>()] = lane_function<kEqual, bool, T, T>()), ...);
  ((opcodes["setp.ne" + bits_suffix<T>()] = lane_function<kDiffer, bool, T, T>()), ...);
  ((opcodes["selp" + bits_suffix<T>()] = lane_function<kSelect, T, T, T, std::uint32_t>()), ...);
}

template <class... T>
void add_choices(Opcodes& opcodes) {
  ((opcodes["selp" + suffix<T>()] = lane_function<kSelect, T, T, T, std::uint32_t>()), ...);
}

}  // namespace

void add_comparisons(Opcodes& opcodes) {
  using i16 = std::int16_t;
  using u16 = std::uint16_t;
  using i32 = std::int32_t;
  using u32 = std::uint32_t;
  using i64 = std::int64_t;
  using u64 = std::uint64_t;
  add_ordered<u16, i16, u32, i32, u64, i64, float, double>(opcodes);
  add_unordered<float, double>(opcodes);
  add_bits<u16, u32, u64>(opcodes);
  add_choices<u16, i16, u32, i32, u64, i64, float, double>(opcodes);
}

}  // namespace teratron::emulated::ptx
