// Chunks of consecutive elements, as kernels that are bound by memory move them: 16 bytes at a time where the views are
// aligned to that, else one element at a time. A kernel that is a template over the length of its chunks is both.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "ops/cuda/kernels/elements.h"

namespace teratron::cuda {

// Chunk as it is stored. kCount elements of up to 16 bytes are moved at once, longer chunks 16 bytes at a time.
template <class T, int kCount>
struct Chunk {
  static constexpr int kBytes = kCount * static_cast<int>(sizeof(T)), kPieceBytes = kBytes < 16 ? kBytes : 16;
  static constexpr int kInPiece = kPieceBytes / static_cast<int>(sizeof(T)), kPieces = kCount / kInPiece;
  struct alignas(kPieceBytes) Piece {
    T values[kInPiece];
  };
  Piece pieces[kPieces];

  __device__ T stored(int i) const { return pieces[i / kInPiece].values[i % kInPiece]; }
  __device__ void set(int i, T value) { pieces[i / kInPiece].values[i % kInPiece] = value; }
  __device__ Wide<T> operator[](int i) const { return widened(stored(i)); }
};

template <int kCount, class T>
__device__ inline Chunk<T, kCount> load_chunk(const T* from) {
  using Piece = typename Chunk<T, kCount>::Piece;
  Chunk<T, kCount> chunk;
  for (int i = 0; i < chunk.kPieces; ++i) chunk.pieces[i] = reinterpret_cast<const Piece*>(from)[i];
  return chunk;
}

template <int kCount, class T>
__device__ inline Chunk<T, kCount> load_chunk_if(bool given, const T* from) {
  return given ? load_chunk<kCount>(from) : Chunk<T, kCount>{};
}

// Each value rounded to T: 16-bit ones in pairs, which is one instruction for bf16.
template <int kCount, class T>
__device__ inline Chunk<T, kCount> narrowed_chunk(const Wide<T> (&values)[kCount]) {
  Chunk<T, kCount> chunk;
  for (int i = 0; i < kCount; i += 2) {
    T* const pair = chunk.pieces[i / chunk.kInPiece].values + i % chunk.kInPiece;
    if constexpr (sizeof(T) == 2 && kCount % 2 == 0) {
      const std::uint32_t bits =
          std::is_same_v<T, Bf16> ? bf16_pair(values[i], values[i + 1]) : f16_pair(values[i], values[i + 1]);
      pair[0].bits = static_cast<std::uint16_t>(bits);
      pair[1].bits = static_cast<std::uint16_t>(bits >> 16);
    } else {
      pair[0] = narrowed<T>(values[i]);
      if constexpr (kCount % 2 == 0) pair[1] = narrowed<T>(values[i + 1]);
    }
  }
  return chunk;
}

template <int kCount, class T>
__device__ inline void store_chunk(T* to, const Chunk<T, kCount>& chunk) {
  using Piece = typename Chunk<T, kCount>::Piece;
  for (int i = 0; i < chunk.kPieces; ++i) reinterpret_cast<Piece*>(to)[i] = chunk.pieces[i];
}

template <int kCount, class T>
__device__ inline void store_chunk(T* to, const Wide<T> (&values)[kCount]) {
  store_chunk<kCount>(to, narrowed_chunk<kCount, T>(values));
}

constexpr int kChunksInFlight = 4;

// visit(i, chunk) with the chunks number first, first + step, .. before `end`, some of them loaded before the first of
// those is used: that keeps memory busy where a thread takes many.
template <int kCount, class T, class Visit>
__device__ inline void for_each_chunk(const T* from, std::int64_t first, std::int64_t end, std::int64_t step,
                                      const Visit& visit) {
  std::int64_t i = first;
  for (; i + (kChunksInFlight - 1) * step < end; i += kChunksInFlight * step) {
    Chunk<T, kCount> loaded[kChunksInFlight];
    for (int c = 0; c < kChunksInFlight; ++c) loaded[c] = load_chunk<kCount>(from + (i + c * step) * kCount);
    for (int c = 0; c < kChunksInFlight; ++c) visit(i + c * step, loaded[c]);
  }
  for (; i < end; i += step) visit(i, load_chunk<kCount>(from + i * kCount));
}

// call(std::integral_constant) with the elements of 16 bytes of T if `vectors`, else with 1.
template <class T, class Call>
void choose_chunk(bool vectors, const Call& call) {
  if (vectors) {
    call(std::integral_constant<int, Vector<T>::kSize>());
  } else {
    call(std::integral_constant<int, 1>());
  }
}

}  // namespace teratron::cuda
