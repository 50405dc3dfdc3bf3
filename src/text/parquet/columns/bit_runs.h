// Small numbers as runs of one value and groups of eight bit-packed values: levels, numbers of dictionary entries,
// booleans (parquet-format's Encodings.md, "RLE / Bit-Packing Hybrid").
#pragma once

#include <cstdint>
#include <string_view>

#include "parquet/file/byte_reader.h"

namespace teratron::parquet {

// `width` bits (1 to 64) from bit number `bit` of `bytes` on, the lowest first. Damaged: they end before.
std::uint64_t packed_bits(std::string_view bytes, std::uint64_t bit, unsigned width);

class BitRuns {
 public:
  BitRuns() = default;
  // `width`: bits of a value, 0 to 32. Damaged: another one.
  BitRuns(std::string_view bytes, unsigned width);

  // Damaged: there are no more.
  std::uint32_t next() {
    if (left_ == 0) begin_run();
    --left_;
    if (packed_.empty()) return value_;
    const auto value = static_cast<std::uint32_t>(packed_bits(packed_, bit_, width_));
    bit_ += width_;
    return value;
  }

 private:
  void begin_run();

  ByteReader bytes_;
  unsigned width_ = 0;
  std::uint64_t left_ = 0;   // values of the run
  std::uint32_t value_ = 0;  // of a run of one value
  std::string_view packed_;  // of a bit-packed run, otherwise empty
  std::uint64_t bit_ = 0;    // the next one in `packed_`
};

}  // namespace teratron::parquet
