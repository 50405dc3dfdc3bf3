// Little-endian numbers and varints from bytes that may end anywhere.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "parquet/file/fault.h"

namespace teratron::parquet {

static_assert(std::endian::native == std::endian::little, "Parquet's numbers are little-endian");

// The number in the first sizeof(T) bytes; there must be as many.
template <class T>
T number_at(std::string_view bytes) {
  T number;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

// Decodes ZigZag: 0, 1, 2, 3, 4 stand for 0, -1, 1, -2, 2.
inline std::int64_t without_zigzag(std::uint64_t number) {
  return static_cast<std::int64_t>((number >> 1) ^ (~(number & 1) + 1));
}

// Takes bytes from the front. Damaged: there are fewer.
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  std::size_t left() const { return bytes_.size() - at_; }
  std::size_t position() const { return at_; }
  std::string_view rest() const { return bytes_.substr(at_); }

  std::string_view take(std::uint64_t count) {
    if (count > left()) throw_short();
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  template <class T>
  T number() {
    return number_at<T>(take(sizeof(T)));
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    throw_damaged("a number has more than 64 bits");
  }
  std::int64_t zigzag() { return without_zigzag(varint()); }

  // The bytes end too early. A reader that has not fetched all of them may fetch more and try again.
  struct Short : Damaged {
    using Damaged::Damaged;
  };

 private:
  [[noreturn]] static void throw_short() { throw Short("its data end in the middle of a value"); }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

}  // namespace teratron::parquet
