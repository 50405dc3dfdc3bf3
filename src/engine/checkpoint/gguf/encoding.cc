#include "checkpoint/gguf/encoding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/float_types.h"

namespace teratron {
namespace {

constexpr float kMostSteps = 127;
constexpr double kLargestF16 = 65504;

F16 step_for(float largest) {
  F16 step(largest / kMostSteps);
  if (static_cast<float>(step) * kMostSteps < largest) ++step.bits;  // the next above, exact in fp32 times 127
  return step;
}

void encode_block(std::byte* to, const float* values) {
  float largest = 0;
  for (std::size_t i = 0; i < kQ8Values; ++i) largest = std::max(largest, std::abs(values[i]));
  const F16 step = step_for(largest);
  const float width = largest == 0 ? 1 : static_cast<float>(step);
  std::memcpy(to, &step.bits, sizeof step.bits);
  for (std::size_t i = 0; i < kQ8Values; ++i) {
    to[sizeof step.bits + i] = static_cast<std::byte>(static_cast<std::int8_t>(std::nearbyint(values[i] / width)));
  }
}

ByteSink block_sink(DType from, ByteSink sink) {
  return [from, next = std::move(sink), values = std::vector<float>(),
          blocks = std::vector<std::byte>()](std::span<const std::byte> bytes) mutable {
    values.resize(bytes.size() / static_cast<std::size_t>(size_of(from)));
    check_equal(values.size() % kQ8Values, std::size_t{0}, "values beside whole blocks");
    convert_floats(std::as_writable_bytes(std::span(values)), DType::kF32, bytes, from);
    blocks.resize(values.size() / kQ8Values * kQ8Bytes);
    for (std::size_t block = 0; block < values.size() / kQ8Values; ++block) {
      encode_block(blocks.data() + block * kQ8Bytes, values.data() + block * kQ8Values);
    }
    next(blocks);
  };
}

}  // namespace

double largest_of(GgufType type) {
  switch (type) {
    case GgufType::kF32: return std::numeric_limits<float>::max();
    case GgufType::kF16: return kLargestF16;
    case GgufType::kBf16: return 0x1.FEp127;
    case GgufType::kQ8: break;
  }
  return kLargestF16 * kMostSteps;
}

ByteSink encoding_sink(DType from, GgufType to, ByteSink sink) {
  switch (to) {
    case GgufType::kF32: return converting_sink(from, DType::kF32, std::move(sink));
    case GgufType::kF16: return converting_sink(from, DType::kF16, std::move(sink));
    case GgufType::kBf16: return converting_sink(from, DType::kBF16, std::move(sink));
    case GgufType::kQ8: break;
  }
  return block_sink(from, std::move(sink));
}

}  // namespace teratron
