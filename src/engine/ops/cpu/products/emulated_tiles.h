// AMX's tiles in plain C++, bit by bit as Intel's manual defines them (tile_unit.h), for tests on any processor. What a
// processor would fault on throws InternalError. NaN are alike: their bits are not the processor's.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "ops/cpu/products/tile_unit.h"

namespace teratron {

template <class T>
class EmulatedTiles {
 public:
  EmulatedTiles() = default;
  EmulatedTiles(const EmulatedTiles&) = delete;
  EmulatedTiles& operator=(const EmulatedTiles&) = delete;

  void configure(const TileShapes& shapes) {
    const auto is_zero = [](const auto* begin, std::int64_t count) {
      return std::all_of(begin, begin + count, is_null);
    };
    constexpr std::int64_t kOthers = std::size(TileShapes().rows) - TileShapes::kTiles;
    check(shapes.palette == 1 && shapes.start_row == 0 && is_zero(shapes.reserved, std::ssize(shapes.reserved)) &&
              is_zero(shapes.rows + TileShapes::kTiles, kOthers) &&
              is_zero(shapes.row_bytes + TileShapes::kTiles, kOthers),
          "reserved fields of tile shapes are set");
    for (std::int64_t tile = 0; tile < TileShapes::kTiles; ++tile) {
      check(shapes.rows[tile] <= TileShapes::kMostRows && shapes.row_bytes[tile] <= TileShapes::kMostRowBytes,
            "a tile is too large");
      check((shapes.rows[tile] == 0) == (shapes.row_bytes[tile] == 0), "a tile has rows without bytes or the reverse");
    }
    shapes_ = shapes;
    std::memset(words_, 0, sizeof(words_));
  }

  template <int tile>
  void zero() {
    check_used(tile);
    std::memset(words_[tile], 0, sizeof(words_[tile]));
  }

  template <int tile>
  void load(const void* from, std::int64_t row_step) {
    zero<tile>();  // beyond the shape, too
    for (std::int64_t i = 0; i < shapes_.rows[tile]; ++i) {
      std::memcpy(words_[tile][i], static_cast<const char*>(from) + i * row_step, shapes_.row_bytes[tile]);
    }
  }

  template <int tile>
  void store(void* to, std::int64_t row_step) const {
    check_used(tile);
    for (std::int64_t i = 0; i < shapes_.rows[tile]; ++i) {
      std::memcpy(static_cast<char*>(to) + i * row_step, words_[tile][i], shapes_.row_bytes[tile]);
    }
  }

  template <int c, int a, int b>
  void multiply() {
    static_assert(c != a && c != b && a != b);
    for (const int tile : {c, a, b}) {
      check_used(tile);
      check(shapes_.row_bytes[tile] % kWordBytes == 0, "a tile's row ends within a word");
    }
    check(shapes_.rows[c] == shapes_.rows[a], "tiles of c and a have different rows");
    check(shapes_.row_bytes[c] == shapes_.row_bytes[b], "tiles of c and b have different columns");
    check(shapes_.row_bytes[a] == shapes_.rows[b] * kWordBytes, "tiles of a and b have different depths");
    multiply_tiles(words_[c], words_[a], words_[b], shapes_.rows[c], shapes_.row_bytes[c] / kWordBytes,
                   shapes_.rows[b]);
  }

 private:
  static constexpr std::int64_t kWordBytes = 4, kRowWords = TileShapes::kMostRowBytes / kWordBytes;
  using Row = std::uint32_t[kRowWords];

  static bool is_null(std::uint32_t value) { return value == 0; }

  static void check(bool holds, const char* otherwise) {
    if (!holds) throw InternalError(otherwise);
  }
  void check_used(int tile) const { check(shapes_.rows[tile] != 0, "a tile without a shape is used"); }

  static float without_subnormals(float value) {
    return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0F, value) : value;
  }

  // Of the low half of a word, or of the high one.
  static float value_of(std::uint32_t word, bool high) {
    const auto bits = static_cast<std::uint16_t>(high ? word >> 16 : word);
    if constexpr (std::is_same_v<T, Bf16>) return without_subnormals(bf16_to_float(bits));
    return f16_to_float(bits);
  }

  static void multiply_tiles(Row* c, const Row* a, const Row* b, std::int64_t rows, std::int64_t columns,
                             std::int64_t depth_words);

  TileShapes shapes_ = {.palette = 0};
  Row words_[TileShapes::kTiles][TileShapes::kMostRows] = {};
};

template <class T>
void EmulatedTiles<T>::multiply_tiles(Row* c, const Row* a, const Row* b, std::int64_t rows, std::int64_t columns,
                                      std::int64_t depth_words) {
  float factors[TileShapes::kMostRows][2][kRowWords];
  for (std::int64_t q = 0; q < depth_words; ++q) {
    for (std::int64_t n = 0; n < columns; ++n) {
      for (const bool high : {false, true}) factors[q][high][n] = value_of(b[q][n], high);
    }
  }
  for (std::int64_t m = 0; m < rows; ++m) {
    float sums[2][kRowWords] = {};  // of the low halves and of the high ones
    for (std::int64_t q = 0; q < depth_words; ++q) {
      for (const bool high : {false, true}) {
        const float value = value_of(a[m][q], high);
        for (std::int64_t n = 0; n < columns; ++n) {
          sums[high][n] = without_subnormals(std::fma(value, factors[q][high][n], sums[high][n]));
        }
      }
    }
    for (std::int64_t n = 0; n < columns; ++n) {
      const float products = without_subnormals(sums[0][n] + sums[1][n]);
      const float before = without_subnormals(std::bit_cast<float>(c[m][n]));
      c[m][n] = std::bit_cast<std::uint32_t>(without_subnormals(before + products));
    }
  }
}

}  // namespace teratron
