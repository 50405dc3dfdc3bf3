// Sizes of blocks of work. The preset `edge` makes them as small as possible, so that small tests meet many blocks and
// every kind of last one.
#pragma once

#include <cstdint>

namespace teratron {

#ifdef TERATRON_EDGE
constexpr bool kSmallestBlocks = true;
#else
constexpr bool kSmallestBlocks = false;
#endif

constexpr std::int64_t block_size(std::int64_t usual, std::int64_t smallest) {
  return kSmallestBlocks ? smallest : usual;
}

}  // namespace teratron
