#include "ops/cuda/linear/column_sum.h"

#include "ops/cuda/kernels/elements.h"
#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {
namespace {

constexpr int kThreads = 128;

// A thread adds up one column of a part.
template <class T>
__global__ void sum_rows_of_part(const T* from, std::int64_t rows, std::int64_t columns, float* partial) {
  const std::int64_t column = std::int64_t{blockIdx.x} * kThreads + threadIdx.x, part = blockIdx.y;
  if (column >= columns) return;
  const std::int64_t begin = part_begin(rows, part), end = part_begin(rows, part + 1);
  float sum = 0;
  for (std::int64_t row = begin; row < end; ++row) sum += widened(from[row * columns + column]);
  partial[part * columns + column] = sum;
}

__global__ void add_parts_of_column(const float* partial, std::int64_t parts, std::int64_t columns, float* to,
                                    bool accumulate) {
  const std::int64_t column = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (column >= columns) return;
  float sum = 0;
  for (std::int64_t part = 0; part < parts; ++part) sum += partial[part * columns + column];
  to[column] = accumulate ? to[column] + sum : sum;
}

}  // namespace

void add_parts(cudaStream_t stream, const float* partial, std::int64_t parts, std::int64_t columns, float* to,
               bool accumulate) {
  launch(stream, shape_for(columns, kThreads), add_parts_of_column, partial, parts, columns, to, accumulate);
}

template <class T>
void sum_rows(cudaStream_t stream, const T* from, std::int64_t rows, std::int64_t columns, float* partial, float* to,
              bool accumulate) {
  LaunchShape shape = shape_for(columns, kThreads);
  shape.grid.y = static_cast<unsigned>(column_sum_parts(rows));
  launch(stream, shape, sum_rows_of_part<T>, from, rows, columns, partial);
  add_parts(stream, partial, column_sum_parts(rows), columns, to, accumulate);
}

template void sum_rows(cudaStream_t, const float*, std::int64_t, std::int64_t, float*, float*, bool);
template void sum_rows(cudaStream_t, const Bf16*, std::int64_t, std::int64_t, float*, float*, bool);
template void sum_rows(cudaStream_t, const F16*, std::int64_t, std::int64_t, float*, float*, bool);

}  // namespace teratron::cuda
