#include "parquet/columns/delta.h"

#include <algorithm>

#include "parquet/columns/bit_runs.h"

namespace teratron::parquet {

DeltaIntegers::DeltaIntegers(std::string_view bytes) : all_(bytes), bytes_(bytes) {
  constexpr std::uint64_t kLargestBlock = std::uint64_t{1} << 31, kGroup = 8;
  const std::uint64_t block = bytes_.varint();
  miniblocks_ = bytes_.varint();
  left_ = bytes_.varint();
  value_ = static_cast<std::uint64_t>(bytes_.zigzag());
  const bool is_block = block > 0 && block <= kLargestBlock && miniblocks_ > 0 && block % miniblocks_ == 0;
  if (!is_block || block / miniblocks_ % kGroup != 0) {
    throw_damaged("it has a block of {} differences in {} parts", block, miniblocks_);
  }
  miniblock_values_ = block / miniblocks_;
}

void DeltaIntegers::begin_block() {
  least_ = static_cast<std::uint64_t>(bytes_.zigzag());
  widths_ = bytes_.take(miniblocks_);
}

void DeltaIntegers::begin_miniblock() {
  if (widths_.empty()) begin_block();
  width_ = static_cast<unsigned char>(widths_[0]);
  widths_.remove_prefix(1);
  constexpr unsigned kWidest = 64;
  if (width_ > kWidest) throw_damaged("it has differences of {} bits", width_);
  packed_ = bytes_.take(miniblock_values_ / 8 * width_);
  in_miniblock_ = miniblock_values_;
  bit_ = 0;
}

std::int64_t DeltaIntegers::next() {
  if (left_ == 0) throw_damaged("a page has fewer values than it says");
  --left_;
  if (is_first_) {
    is_first_ = false;
    return static_cast<std::int64_t>(value_);
  }
  if (in_miniblock_ == 0) begin_miniblock();
  --in_miniblock_;
  value_ += least_ + (width_ == 0 ? 0 : packed_bits(packed_, bit_, width_));
  bit_ += width_;
  return static_cast<std::int64_t>(value_);
}

std::size_t DeltaIntegers::size() const {
  DeltaIntegers walker(all_);
  // A part that has no values has a width, but no bytes.
  for (std::uint64_t rest = walker.left_ > 0 ? walker.left_ - 1 : 0; rest > 0;) {
    walker.begin_miniblock();
    rest -= std::min(rest, walker.miniblock_values_);
  }
  return walker.bytes_.position();
}

}  // namespace teratron::parquet
