// Prefetches weights while others are multiplied. A tile reads a few rows of weights side by side, which are too short
// for the hardware to predict: without this, a tile waits for most of their lines (measured on Zen 4: 2 to 3 times as
// long).
#pragma once

#include <algorithm>
#include <cstdint>

#include "hwy/base.h"
#include "hwy/cache_control.h"

namespace teratron {

// Fetches memory in order, a part in each step of a tile. A step reads `values` of each of `columns` rows of weights.
template <class T, int columns, std::int64_t values>
class FetchAhead {
 public:
  FetchAhead() = default;  // fetches nothing
  // Fetches weights from `begin` on while tiles of tile_rows rows of x are multiplied: by the last of all `rows`, as
  // many as they have read.
  FetchAhead(const T* begin, std::int64_t rows, int tile_rows)
      : at_(begin), parts_((columns * tile_rows + rows - 1) / std::max<std::int64_t>(rows, tile_rows)) {}

  HWY_INLINE void step() {
#pragma GCC unroll 4
    for (int part = 0; part < columns; ++part) {
      if (part < parts_) hwy::Prefetch(at_ + part * values);
    }
    at_ += parts_ * values;
  }

 private:
  const T* at_ = nullptr;
  std::int64_t parts_ = 0;  // of `values` each
};

}  // namespace teratron
