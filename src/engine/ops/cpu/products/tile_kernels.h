// The parts of gemm.h's product by AMX's tiles, for values of bf16 and f16 with fp32 sums. A panel of b is what
// bf16_kernels.h makes of it, whichever of the two types its halves are of: words of two depths, which are rows of
// tiles of b as they lie there. So are rows of a, which hold the depths one after the other. Two times two tiles of c
// are summed at a time, from four of a and b.
//
// A panel has words for a multiple of kTileDepth depths. Those beyond the last are zero, and so is what stands for them
// in a, since a NaN times zero would be one. c and a have as many rows, and c and b as many columns, as there are:
// tiles of the last ones are smaller.
//
// Tiles of depth begin at the first depth of a run, and each is added to c as a whole. So the bits of an element of c
// depend on k and its runs alone.
#pragma once

#include "base/block_size.h"
#include "ops/cpu/products/gemm.h"

namespace teratron {

constexpr std::int64_t kTileRowsOfC = block_size(16, 2), kTileColumnsOfC = 16, kTileDepth = block_size(32, 4);

// Columns [begin, end) of the chunk's panels, of values of 16 bits.
void pack_tile_columns(const GemmOperand& b, const GemmChunk& chunk, std::int64_t begin, std::int64_t end,
                       bool in_vectors);

// Rows of a transposed a[rows, depth], values of 16 bits of which (i, p) is at a.data[p * a.stride + i], the other way
// round: word (i, q), of depths 2 q and 2 q + 1, goes to to[i * to_stride + q], for q < words. Beyond the depth there
// are zeros.
void pack_tile_rows(const GemmOperand& a, std::int64_t rows, std::int64_t depth, std::int64_t words, std::uint32_t* to,
                    std::int64_t to_stride, bool in_vectors);

}  // namespace teratron
