// The state of a warp, and how instructions read and write the values of its lanes.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "emulated_gpu/ptx/program.h"
#include "emulated_gpu/ptx/shared_memory.h"
#include "emulated_gpu/ptx/warpgroup_products.h"

namespace teratron::emulated::ptx {

template <class T>
using Lanes = std::array<T, kLanes>;

struct Warp {
  // Parked: waits for other lanes of the warp. Stalled: waits for what other warps or copies do.
  enum class Lane : std::uint8_t { kReady, kParked, kStalled, kDone };

  unsigned number = 0;
  LaneMask live = 0;
  Lanes<std::uint32_t> next{};  // instruction
  Lanes<Lane> state{};
  bool waits_for_block = false;
  std::uint32_t barrier_stamp = 0;  // of shared memory, at its last barrier
  std::uint32_t* registers = nullptr;
  const std::uint32_t* constants = nullptr;
  Clock clock = {};
  std::string stalls_for = {}, stalled_for = {};  // set by an instruction that must be tried again; for messages
  bool is_at_named_barrier = false;
  std::uint32_t named_generation = 0;
  std::uint32_t register_count = 0;  // of a lane: setmaxnreg
  std::size_t done_together = 0;     // instructions with its warpgroup
  WarpProducts* products = nullptr;

  const std::uint32_t* row(Row at) const {
    return (at & kConstant) != 0 ? constants + (at & ~kConstant) : registers + at;
  }
  unsigned thread(unsigned lane) const { return number * kLanes + lane; }
};

// Types of less than 4 bytes, predicates among them, lie in 4.
template <class T>
constexpr bool kIsWide = sizeof(T) == 8;

template <class T>
Lanes<T> read(const Warp& warp, Row at) {
  Lanes<T> values;
  const std::uint32_t* const row = warp.row(at);
  if constexpr (sizeof(T) >= 4) {
    std::memcpy(values.data(), row, sizeof(values));
  } else {
    for (unsigned lane = 0; lane < kLanes; ++lane) values[lane] = static_cast<T>(row[lane]);
  }
  return values;
}

template <class T>
void write(Warp& warp, Row at, LaneMask mask, const Lanes<T>& values) {
  if constexpr (sizeof(T) < 4) {
    Lanes<std::uint32_t> whole;
    for (unsigned lane = 0; lane < kLanes; ++lane) whole[lane] = static_cast<std::uint32_t>(values[lane]);
    write(warp, at, mask, whole);
  } else if (mask == kAllLanes) {
    std::memcpy(warp.registers + at, values.data(), sizeof(values));
  } else {
    Lanes<T> row;
    std::memcpy(row.data(), warp.registers + at, sizeof(row));
    for (unsigned lane = 0; lane < kLanes; ++lane) row[lane] = (mask >> lane & 1) != 0 ? values[lane] : row[lane];
    std::memcpy(warp.registers + at, row.data(), sizeof(row));
  }
}

// Base of an address operand, and the offset beside it. Constant ones are wide.
inline Lanes<std::uint64_t> addresses(const Warp& warp, Row row, bool wide, std::int64_t offset) {
  Lanes<std::uint64_t> all;
  if (wide || (row & kConstant) != 0) {
    all = read<std::uint64_t>(warp, row);
  } else {
    const Lanes<std::uint32_t> narrow = read<std::uint32_t>(warp, row);
    for (unsigned lane = 0; lane < kLanes; ++lane) all[lane] = narrow[lane];
  }
  for (std::uint64_t& address : all) address += static_cast<std::uint64_t>(offset);
  return all;
}

// The lanes of a mask, from the lowest on.
template <class Visit>
void for_each_lane(LaneMask mask, const Visit& visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<unsigned>(__builtin_ctz(mask)));
}

}  // namespace teratron::emulated::ptx
