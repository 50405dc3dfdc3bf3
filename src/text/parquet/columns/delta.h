// Integers as differences in bit-packed blocks (parquet-format's Encodings.md, "Delta Encoding").
#pragma once

#include <cstdint>
#include <string_view>

#include "parquet/file/byte_reader.h"

namespace teratron::parquet {

class DeltaIntegers {
 public:
  // Reads the header. Damaged: it is impossible.
  explicit DeltaIntegers(std::string_view bytes);

  // The next value, modulo 2^64. Damaged: there is none.
  std::int64_t next();

  // The size in bytes of all values, read or not: the offset of what follows them.
  std::size_t size() const;

 private:
  void begin_block();
  void begin_miniblock();

  std::string_view all_;
  ByteReader bytes_;
  std::uint64_t miniblocks_ = 0, miniblock_values_ = 0;
  std::uint64_t left_ = 0;  // values to come
  std::uint64_t value_ = 0;
  bool is_first_ = true;
  std::uint64_t least_ = 0;         // difference of the block
  std::string_view widths_;         // of the block's miniblocks that are to come
  std::string_view packed_;         // of the miniblock
  unsigned width_ = 0;              // of its differences
  std::uint64_t in_miniblock_ = 0;  // values of it to come
  std::uint64_t bit_ = 0;
};

}  // namespace teratron::parquet
