// Sizes of blocks, grains and chunks in which work is cut up. In a build of the preset `edge` they are as small as they
// can be, so that small tests meet many blocks and every kind of last one.
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
