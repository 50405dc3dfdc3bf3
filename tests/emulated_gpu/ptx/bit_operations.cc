#include "emulated_gpu/ptx/lane_functions.h"

namespace teratron::emulated::ptx {
namespace {

constexpr auto kAnd = [](auto a, auto b) { return wrapping(a) & wrapping(b); };
constexpr auto kOr = [](auto a, auto b) { return wrapping(a) | wrapping(b); };
constexpr auto kXor = [](auto a, auto b) { return wrapping(a) ^ wrapping(b); };
constexpr auto kNot = [](auto a) { return ~wrapping(a); };
constexpr auto kNotPredicate = [](std::uint32_t a) { return a ^ 1U; };

// As far as the type is wide, and no further.
constexpr auto kShiftLeft = [](auto a, std::uint32_t by) {
  return by < 8 * sizeof(a) ? wrapping(a) << by : decltype(wrapping(a)){0};
};
template <class T>
constexpr auto kShiftRight = [](T a, std::uint32_t by) {
  constexpr std::uint32_t last = 8 * sizeof(T) - 1;
  if (by > last) return static_cast<T>(std::is_signed_v<T> ? a >> last : 0);
  return static_cast<T>(a >> by);
};

// `count` bits of a, put into b from bit `position` on.
constexpr auto kInsert = [](auto a, auto b, std::uint32_t position, std::uint32_t count) {
  using T = decltype(a);
  constexpr std::uint32_t bits = 8 * sizeof(T);
  position &= 255;
  count &= 255;
  if (position >= bits) return b;
  const T low = count >= bits ? ~T{0} : static_cast<T>((T{1} << count) - 1);
  const T mask = static_cast<T>(low << position);
  return static_cast<T>((b & ~mask) | (static_cast<T>(a << position) & mask));
};

// Four bytes of the eight of b and a, each by a number of 3 bits and one that asks for its sign.
constexpr auto kPermute = [](std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t which = selector >> (4 * i) & 15;
    std::uint32_t byte = static_cast<std::uint32_t>(bytes >> (8 * (which & 7))) & 255;
    if ((which & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
};

template <class... T>
void add_by_width(Opcodes& opcodes) {
  ((opcodes["and" + bits_suffix<T>()] = lane_function<kAnd, T, T, T>()), ...);
  ((opcodes["or" + bits_suffix<T>()] = lane_function<kOr, T, T, T>()), ...);
  ((opcodes["xor" + bits_suffix<T>()] = lane_function<kXor, T, T, T>()), ...);
  ((opcodes["not" + bits_suffix<T>()] = lane_function<kNot, T, T>()), ...);
  ((opcodes["shl" + bits_suffix<T>()] = lane_function<kShiftLeft, T, T, std::uint32_t>()), ...);
}

template <class... T>
void add_right_shifts(Opcodes& opcodes) {
  ((opcodes["shr" + suffix<T>()] = lane_function<kShiftRight<T>, T, T, std::uint32_t>()), ...);
}

}  // namespace

void add_bit_operations(Opcodes& opcodes) {
  add_by_width<std::uint16_t, std::uint32_t, std::uint64_t>(opcodes);
  add_right_shifts<std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, std::uint64_t, std::int64_t>(opcodes);
  opcodes["and.pred"] = lane_function<kAnd, std::uint32_t, std::uint32_t, std::uint32_t>();
  opcodes["or.pred"] = lane_function<kOr, std::uint32_t, std::uint32_t, std::uint32_t>();
  opcodes["xor.pred"] = lane_function<kXor, std::uint32_t, std::uint32_t, std::uint32_t>();
  opcodes["not.pred"] = lane_function<kNotPredicate, std::uint32_t, std::uint32_t>();
  using u32 = std::uint32_t;
  using u64 = std::uint64_t;
  opcodes["bfi.b32"] = lane_function<kInsert, u32, u32, u32, u32, u32>();
  opcodes["bfi.b64"] = lane_function<kInsert, u64, u64, u64, u32, u32>();
  opcodes["prmt.b32"] = lane_function<kPermute, u32, u32, u32, u32>();
}

}  // namespace teratron::emulated::ptx
