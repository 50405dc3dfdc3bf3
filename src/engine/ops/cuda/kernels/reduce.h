// Sums and maxima over the threads of a warp or of a block, in an order that depends on their number alone; every
// thread receives the result, the same bits.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {

struct Plus {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <class Combine, class T>
__device__ inline T reduce_warp(T value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = Combine()(value, __shfl_xor_sync(0xffffffffU, value, distance));
  }
  return value;
}

// Over all kThreads threads of the block, which are whole warps: all must come here. kThreads == kWarp stands for the
// threads of a warp in a block of any size, and needs no barrier.
template <int kThreads, class Combine, class T>
__device__ inline T reduce(T value) {
  static_assert(kThreads % kWarp == 0);
  value = reduce_warp<Combine>(value);
  if constexpr (kThreads > kWarp) {
    __shared__ T of_warps[kThreads / kWarp];
    __syncthreads();  // what an earlier call left has been read
    if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = of_warps[0];
    for (int warp = 1; warp < kThreads / kWarp; ++warp) value = Combine()(value, of_warps[warp]);
  }
  return value;
}

}  // namespace teratron::cuda
