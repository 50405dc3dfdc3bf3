// Sizes of the scratch memory in which operations of the CUDA back end pass results between their kernels. Plans use
// them, too, without a device, so nothing here needs CUDA's headers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace teratron::cuda {

// Parts of the rows that a sum over them is made of: enough to fill a device, each of 64 rows or more.
constexpr std::int64_t column_sum_parts(std::int64_t rows) {
  constexpr std::int64_t kMostParts = 64, kRows = 64;
  return std::min(kMostParts, (rows + kRows - 1) / kRows);
}

// Parts of the rows in a norm's gradient: two for each of the 132 multiprocessors of an H100, so that all have as much
// to do; and at least 32 rows each, to limit the traffic of their sums.
constexpr std::int64_t norm_gradient_parts(std::int64_t rows) {
  constexpr std::int64_t kMostParts = 264, kRows = 32;
  return std::min(kMostParts, (rows + kRows - 1) / kRows);
}
constexpr std::int64_t norm_gradient_floats(std::int64_t rows, std::int64_t columns) {
  return norm_gradient_parts(rows) * 2 * columns;
}

// Rows that a block of the embedding's gradient adds up.
constexpr std::int64_t kEmbeddingGroup = 32;
constexpr std::int64_t embedding_groups(std::int64_t rows) { return (rows + kEmbeddingGroup - 1) / kEmbeddingGroup; }
// Two sums of a group, then two numbers of each row.
constexpr std::int64_t embedding_gradient_floats(std::int64_t rows, std::int64_t hidden) {
  return 2 * embedding_groups(rows) * (hidden + kEmbeddingGroup);
}

// Blocks of a view whose squares are summed apart, in double, at most: enough to fill a device.
constexpr std::int64_t kSquareBlocks = 1024;
// Parts of a tally, at most.
constexpr unsigned kMostTallyBlocks = 512;
// Blocks that attend to a cache, at most, beside one for each query (attention_cached.cu).
constexpr std::int64_t kCachedAttentionBlocks = 256;

}  // namespace teratron::cuda
