// Instructions that are a function of a lane's values: makers of their handlers.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>

#include "emulated_gpu/ptx/opcodes.h"
#include "emulated_gpu/ptx/warp.h"

namespace teratron::emulated::ptx {

template <class T>
constexpr std::uint8_t kWidth = kIsWide<T> ? 8 : 4;

// Name of a type in PTX.
template <class T>
std::string suffix() {
  const std::string bits = std::to_string(8 * sizeof(T));
  if (std::is_floating_point_v<T>) return ".f" + bits;
  return (std::is_signed_v<T> ? ".s" : ".u") + bits;
}
template <class T>
std::string bits_suffix() {
  return ".b" + std::to_string(8 * sizeof(T));
}

// Integers as C++ can add and multiply them without overflow.
template <class T>
constexpr auto wrapping(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::conditional_t<kIsWide<T>, std::uint64_t, std::uint32_t>>(value);
  } else {
    return value;
  }
}

template <auto kFunction, class R, class... T, std::size_t... kAt>
void apply(Warp& warp, const Instruction& instruction, LaneMask mask, std::index_sequence<kAt...>) {
  Lanes<R> results;
  [&](const Lanes<T>&... operands) {
    for (unsigned lane = 0; lane < kLanes; ++lane) results[lane] = static_cast<R>(kFunction(operands[lane]...));
  }(read<T>(warp, instruction.rows[1 + kAt])...);
  write(warp, instruction.rows[0], mask, results);
}

// d = function(operands), of types T, with a result of type R.
template <auto kFunction, class R, class... T>
Opcode lane_function() {
  const Handler run = [](Block&, Warp& warp, const Instruction& instruction, LaneMask mask) {
    apply<kFunction, R, T...>(warp, instruction, mask, std::index_sequence_for<T...>());
  };
  return {.run = run, .widths = {kWidth<R>, kWidth<T>...}, .operands = 1 + sizeof...(T)};
}

template <auto kFunction, class... T>
void add_unary(Opcodes& opcodes, const std::string& name) {
  ((opcodes[name + suffix<T>()] = lane_function<kFunction, T, T>()), ...);
}
template <auto kFunction, class... T>
void add_binary(Opcodes& opcodes, const std::string& name) {
  ((opcodes[name + suffix<T>()] = lane_function<kFunction, T, T, T>()), ...);
}
template <auto kFunction, class... T>
void add_ternary(Opcodes& opcodes, const std::string& name) {
  ((opcodes[name + suffix<T>()] = lane_function<kFunction, T, T, T, T>()), ...);
}

}  // namespace teratron::emulated::ptx
