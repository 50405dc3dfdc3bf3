#include "parquet/columns/bit_runs.h"

#include <algorithm>

namespace teratron::parquet {

BitRuns::BitRuns(std::string_view bytes, unsigned width) : bytes_(bytes), width_(width) {
  constexpr unsigned kWidest = 32;
  if (width > kWidest) throw_damaged("it has numbers of {} bits where {} are the most", width, kWidest);
}

void BitRuns::begin_run() {
  constexpr std::uint64_t kGroup = 8, kMost = std::uint64_t{1} << 32;
  do {
    const std::uint64_t head = bytes_.varint();
    const std::uint64_t count = head >> 1;
    if (count > kMost) throw_damaged("it has a run of {} numbers", count);
    packed_ = {};
    value_ = 0;
    bit_ = 0;
    if ((head & 1) == 0) {
      left_ = count;
      const std::string_view value = bytes_.take((width_ + 7) / 8);
      for (std::size_t i = value.size(); i-- > 0;) value_ = value_ << 8 | static_cast<unsigned char>(value[i]);
      continue;
    }
    left_ = count * kGroup;
    // Some writers leave out the rest of the last group.
    if (width_ > 0) packed_ = bytes_.take(std::min<std::uint64_t>(count * width_, bytes_.left()));
    if (width_ > 0 && packed_.empty() && left_ > 0) throw ByteReader::Short("its data end in a run");
  } while (left_ == 0);
}

std::uint64_t packed_bits(std::string_view bytes, std::uint64_t bit, unsigned width) {
  const std::uint64_t first = bit / 8, end = (bit + width + 7) / 8;
  if (end > bytes.size()) throw ByteReader::Short("its data end in a run");
  const unsigned shift = bit % 8;
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + first, std::min<std::uint64_t>(end - first, sizeof value));
  value >>= shift;
  if (end - first > sizeof value) {  // a ninth byte
    value |= std::uint64_t{static_cast<unsigned char>(bytes[first + sizeof value])} << (64 - shift);
  }
  return width < 64 ? value & ((std::uint64_t{1} << width) - 1) : value;
}

}  // namespace teratron::parquet
