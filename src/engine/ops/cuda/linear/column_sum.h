// Sums over rows, in an order that depends on the shape alone: blocks sum parts of the rows, and the parts are then
// added.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "ops/cuda/scratch_sizes.h"

namespace teratron::cuda {

// The rows [begin, end) of a part.
constexpr std::int64_t part_begin(std::int64_t rows, std::int64_t part) { return rows * part / column_sum_parts(rows); }

// to[columns] (+)= the sum of partial[parts, columns] over its parts, in their order.
void add_parts(cudaStream_t stream, const float* partial, std::int64_t parts, std::int64_t columns, float* to,
               bool accumulate);

// to[columns] (+)= the sum over the rows of from[rows, columns]; `partial` has room for column_sum_parts(rows) *
// columns.
template <class T>
void sum_rows(cudaStream_t stream, const T* from, std::int64_t rows, std::int64_t columns, float* partial, float* to,
              bool accumulate);

}  // namespace teratron::cuda
