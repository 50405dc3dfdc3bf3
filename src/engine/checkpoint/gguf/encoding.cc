#include "checkpoint/gguf/encoding.h"

#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tensor/weight_tiles.h"

namespace teratron {
namespace {

void encode_block(GgufType type, std::byte* to, const float* values) {
  const std::span<const float, kTileColumns> from(values, kTileColumns);
  const WeightBlock block = type == GgufType::kQ8 ? q8_block(from) : q4_block(from);
  std::memcpy(to, &block.step.bits, sizeof block.step.bits);
  to += sizeof block.step.bits;
  if (type == GgufType::kQ8) {
    std::memcpy(to, block.values.data(), block.values.size());
    return;
  }
  constexpr std::size_t kHalf = kTileColumns / 2;
  for (std::size_t i = 0; i < kHalf; ++i) {
    to[i] = static_cast<std::byte>((block.values[i] + kQ4Zero) | (block.values[i + kHalf] + kQ4Zero) << 4);
  }
}

ByteSink block_sink(DType from, GgufType type, ByteSink sink) {
  return [from, type, block_bytes = type == GgufType::kQ8 ? kQ8Bytes : kQ4Bytes, next = std::move(sink),
          values = std::vector<float>(), blocks = std::vector<std::byte>()](std::span<const std::byte> bytes) mutable {
    values.resize(bytes.size() / static_cast<std::size_t>(size_of(from)));
    check_equal(values.size() % kBlockValues, std::size_t{0}, "values beside whole blocks");
    convert_floats(std::as_writable_bytes(std::span(values)), DType::kF32, bytes, from);
    blocks.resize(values.size() / kBlockValues * block_bytes);
    for (std::size_t block = 0; block < values.size() / kBlockValues; ++block) {
      encode_block(type, blocks.data() + block * block_bytes, values.data() + block * kBlockValues);
    }
    next(blocks);
  };
}

}  // namespace

double largest_of(GgufType type) {
  switch (type) {
    case GgufType::kF32: return std::numeric_limits<float>::max();
    case GgufType::kF16: return double{kLargestF16};
    case GgufType::kBf16: return 0x1.FEp127;
    case GgufType::kQ4: return largest_in(DType::kQ4Tile);
    case GgufType::kQ8: break;
  }
  return largest_in(DType::kQ8Tile);
}

ByteSink encoding_sink(DType from, GgufType to, ByteSink sink) {
  switch (to) {
    case GgufType::kF32: return converting_sink(from, DType::kF32, std::move(sink));
    case GgufType::kF16: return converting_sink(from, DType::kF16, std::move(sink));
    case GgufType::kBf16: return converting_sink(from, DType::kBF16, std::move(sink));
    case GgufType::kQ8:
    case GgufType::kQ4: break;
  }
  return block_sink(from, to, std::move(sink));
}

}  // namespace teratron
