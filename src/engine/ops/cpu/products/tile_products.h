// Products of rows with weights in tiles (tensor/weight_tiles.h), in whole numbers: a row's blocks of 32 columns are
// rounded first, then each tile's words are multiplied with the row's words. The products of a block are exact; blocks
// add up in their order, so that a row's bits depend neither on the rows beside it nor on threads nor on the kernel.
#pragma once

#include <cstdint>

#include "ops/backend.h"
#include "ops/cpu/products/gemm.h"
#include "ops/cpu/scratch.h"
#include "ops/working_memory.h"
#include "tensor/weight_tiles.h"

namespace teratron {

// Rows in whole numbers, and a matrix in tiles. A block's sum of products begins with its offset, which takes back what
// larger_by() adds.
struct TileProduct {
  const void* tiles;
  std::int64_t blocks;          // of a row
  const std::int8_t* values;    // [rows, 32 * blocks]
  const float* steps;           // [rows, blocks]
  const std::int32_t* offsets;  // [rows, blocks]
};

// sums[t, 0..16) of rows [begin, end) and one row of tiles; row `begin` is t = 0.
using TileKernel = void (*)(const TileProduct& product, std::int64_t tile_row, std::int64_t begin, std::int64_t end,
                            float* sums, std::int64_t stride);

// The constant that kernels add to the whole numbers of weights, so that none is negative.
constexpr int larger_by(DType tiles) { return tiles == DType::kQ8Tile ? 128 : kQ4Zero; }

// Memory of a TileProduct's rows.
struct RoundedRows {
  std::int8_t* values;
  float* steps;
  std::int32_t* offsets;
};

// Functions for one storage type of the rows and one type of tiles.
struct TileLinearKernels {
  // Row `row` of args.x becomes row `at`.
  void (*round)(const LinearForward& args, std::int64_t row, const RoundedRows& to, std::int64_t at);
  void (*finish)(const LinearForward& args, const GemmBlock& block, const GemmSums& sums);
  TileKernel multiply;
};

// Whether the processor has the instruction VPDPBUSD: in 512 bits, as AVX512-VNNI (Ice Lake, Zen 4 and later); in 256
// bits, as AVX-VNNI (Alder Lake and later).
bool has_vnni_products();
bool has_avx_vnni();
// The kernel in 512 bits; only where has_vnni_products().
TileKernel vnni_kernel(DType tiles);

// Includes the scratch memory of a product with weights in tiles, of at most so many rows.
void include_tile_linear(const WorkShapes::Product& product, ScratchSizes& sizes);

}  // namespace teratron
