// Tallies (ops/operations.h) in the device's memory: a partial tally of each block, then their sum by one block, so
// that the order depends on the shape alone.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/kernels/chunks.h"
#include "ops/cuda/kernels/reduce.h"
#include "ops/cuda/scratch_sizes.h"
#include "ops/storage.h"

namespace teratron {
namespace cuda {
namespace {

constexpr int kThreads = 256;

// fmaxf() takes the number where the other is a NaN, so that only the squares show it.
__device__ Tally sum_over_block(double squares, float largest, std::uint32_t bits) {
  return {.squares = reduce<kThreads, Plus>(squares),
          .largest = reduce<kThreads, Larger>(largest),
          .bits = reduce<kThreads, Plus>(bits)};
}

template <class T>
__device__ std::uint32_t sum_of_words(T value) {
  std::uint32_t words[2] = {};
  memcpy(words, &value, sizeof(T));
  return words[0] + words[1];
}

template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) tally_blocks(const T* values, std::int64_t count, Tally* of_blocks) {
  const std::int64_t chunks = count / kCount, step = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t own = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  Wide<T> squares[kCount] = {};
  float largest = 0;
  std::uint32_t bits = 0;
  const auto take = [&](Wide<T>& sum, T stored) {
    const Wide<T> value = widened(stored);
    sum += value * value;
    largest = fmaxf(largest, static_cast<float>(value < 0 ? -value : value));
    bits += sum_of_words(stored);
  };
  for_each_chunk<kCount>(values, own, chunks, step, [&](std::int64_t, const Chunk<T, kCount>& chunk) {
    for (int e = 0; e < kCount; ++e) take(squares[e], chunk.stored(e));
  });
  if (own < count - chunks * kCount) take(squares[0], values[chunks * kCount + own]);  // after the last chunk
  double sum = 0;
  for (int e = 0; e < kCount; ++e) sum += squares[e];
  const Tally of_block = sum_over_block(sum, largest, bits);
  if (threadIdx.x == 0) of_blocks[blockIdx.x] = of_block;
}

__global__ void __launch_bounds__(kThreads) add_tallies(Tally* total, const Tally* of_blocks, unsigned blocks) {
  double squares = 0;
  float largest = 0;
  std::uint32_t bits = 0;
  for (unsigned block = threadIdx.x; block < blocks; block += kThreads) {
    squares += of_blocks[block].squares;
    largest = fmaxf(largest, of_blocks[block].largest);
    bits += of_blocks[block].bits;
  }
  const Tally sum = sum_over_block(squares, largest, bits);
  if (threadIdx.x != 0) return;
  total->squares += sum.squares;
  total->largest = std::isnan(total->squares) ? static_cast<float>(total->squares) : fmaxf(total->largest, sum.largest);
  total->bits += sum.bits;
}

}  // namespace
}  // namespace cuda

void CudaBackend::do_tally(const TensorRef& to, const TensorRef& from) {
  visit_floating(from.dtype, [&]<class T>(ElementType<T>) {
    const bool vectors = reinterpret_cast<std::uintptr_t>(from.data) % 16 == 0;
    cuda::choose_chunk<T>(vectors, [&](auto chunk) {
      const auto shape = cuda::shape_for(from.elements() / (chunk * cuda::kChunksInFlight) + 1, cuda::kThreads);
      const unsigned blocks = std::min(shape.grid.x, cuda::kMostTallyBlocks);
      Tally* const of_blocks = scratch_.of<Tally>(blocks);
      cuda::launch(stream_, {.grid = dim3(blocks), .block = dim3(cuda::kThreads)}, cuda::tally_blocks<T, chunk>,
                   from.as<T>(), from.elements(), of_blocks);
      cuda::launch(stream_, {.grid = dim3(1), .block = dim3(cuda::kThreads)}, cuda::add_tallies,
                   static_cast<Tally*>(to.data), of_blocks, blocks);
    });
  });
}

}  // namespace teratron
