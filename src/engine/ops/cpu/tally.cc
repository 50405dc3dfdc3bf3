// Tallies: the sum of squares, the largest magnitude and the sum of bit patterns, in one pass over memory. Plain loops
// over lanes, which compilers turn into vectors; memory bounds them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/block_size.h"
#include "base/host/threads.h"
#include "ops/cpu/conversion.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/storage.h"

namespace teratron {
namespace {

constexpr std::int64_t kTallyBlock = block_size(1 << 12, 2);  // squares added in fp32 before double takes over
constexpr std::size_t kTallyLanes = 16;

template <class Word>
std::uint32_t sum_of_words(const std::byte* from, std::int64_t count) {
  std::uint32_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, from + i * static_cast<std::int64_t>(sizeof(Word)), sizeof(Word));
    sum += word;
  }
  return sum;
}

// Squares and the largest of a block of floats. A comparison with a NaN is false, so that only the squares show it.
Tally tally_of_floats(const float* values, std::int64_t count) {
  std::array<float, kTallyLanes> squares = {}, largest = {};
  const auto take = [&](std::size_t lane, float value) {
    squares[lane] += value * value;
    const float magnitude = std::abs(value);
    largest[lane] = magnitude > largest[lane] ? magnitude : largest[lane];
  };
  std::int64_t i = 0;
  for (; i + static_cast<std::int64_t>(kTallyLanes) <= count; i += static_cast<std::int64_t>(kTallyLanes)) {
    for (std::size_t lane = 0; lane < kTallyLanes; ++lane) take(lane, values[static_cast<std::size_t>(i) + lane]);
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) take(lane, values[i]);
  Tally tally;
  for (std::size_t lane = 0; lane < kTallyLanes; ++lane) {
    tally.squares += double{squares[lane]};
    tally.largest = std::max(tally.largest, largest[lane]);
  }
  return tally;
}

Tally tally_of_doubles(const double* values, std::int64_t count) {
  Tally tally;
  for (std::int64_t i = 0; i < count; ++i) {
    tally.squares += values[i] * values[i];
    tally.largest = std::max(tally.largest, static_cast<float>(std::abs(values[i])));
  }
  return tally;
}

Tally tally_of_block(const TensorRef& from, std::int64_t begin, std::int64_t count) {
  const std::byte* const at = static_cast<const std::byte*>(from.data) + begin * size_of(from.dtype);
  Tally tally;
  if (from.dtype == DType::kF64) {
    tally = tally_of_doubles(from.as<double>() + begin, count);
    tally.bits = sum_of_words<std::uint32_t>(at, 2 * count);
  } else if (from.dtype == DType::kF32) {
    tally = tally_of_floats(from.as<float>() + begin, count);
    tally.bits = sum_of_words<std::uint32_t>(at, count);
  } else {
    std::array<float, std::size_t{1} << 12> wide;
    conversion(DType::kF32, from.dtype)(reinterpret_cast<std::byte*>(wide.data()), at, count);
    tally = tally_of_floats(wide.data(), count);
    tally.bits = sum_of_words<std::uint16_t>(at, count);
  }
  return tally;
}

}  // namespace

void CpuBackend::do_tally(const TensorRef& to, const TensorRef& from) {
  const std::int64_t count = from.elements();
  std::vector<Tally> parts(static_cast<std::size_t>((count + kTallyBlock - 1) / kTallyBlock));
  parallel_for(count, 8 * kTallyBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; block += kTallyBlock) {
      parts[static_cast<std::size_t>(block / kTallyBlock)] =
          tally_of_block(from, block, std::min(kTallyBlock, end - block));
    }
  });
  Tally& sum = *static_cast<Tally*>(to.data);
  for (const Tally& part : parts) {
    sum.squares += part.squares;
    if (!(part.largest <= sum.largest)) sum.largest = part.largest;
    sum.bits += part.bits;
  }
  if (std::isnan(sum.squares)) sum.largest = static_cast<float>(sum.squares);
}

}  // namespace teratron
