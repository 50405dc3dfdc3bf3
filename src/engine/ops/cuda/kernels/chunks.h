// Chunks of consecutive elements, as kernels that are bound by memory move them: 16 bytes at a time where the views are
// aligned to that, else one element at a time. A kernel that is a template over the length of its chunks is both.
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "ops/cuda/kernels/elements.h"

namespace teratron::cuda {

// Chunk as it is stored. kCount elements of up to 16 bytes are moved at once, longer chunks 16 bytes at a time.
// Elements of 16 bits lie in words of two, since taking a half out of a register costs an instruction.
template <class T, int kCount>
struct Chunk {
  static constexpr int kBytes = kCount * static_cast<int>(sizeof(T)), kPieceBytes = kBytes < 16 ? kBytes : 16;
  static constexpr bool kHasPairs = sizeof(T) == 2 && kCount % 2 == 0;
  using Unit = std::conditional_t<kHasPairs, std::uint32_t, T>;
  static constexpr int kInUnit = static_cast<int>(sizeof(Unit) / sizeof(T)),
                       kInPiece = kPieceBytes / static_cast<int>(sizeof(Unit)),  // units
      kPieces = kCount / (kInPiece * kInUnit);
  struct alignas(kPieceBytes) Piece {
    Unit units[kInPiece];
  };
  Piece pieces[kPieces];

  __device__ Unit& unit(int i) { return pieces[i / kInPiece].units[i % kInPiece]; }
  __device__ const Unit& unit(int i) const { return pieces[i / kInPiece].units[i % kInPiece]; }

  __device__ T stored(int i) const {
    if constexpr (kHasPairs) {
      return std::bit_cast<T>(static_cast<std::uint16_t>(unit(i / 2) >> (i % 2 * 16)));
    } else {
      return unit(i);
    }
  }
  __device__ void set(int i, T value) {
    if constexpr (kHasPairs) {
      const std::uint32_t bits = std::bit_cast<std::uint16_t>(value), others = 0xffffU << (i % 2 == 0 ? 16 : 0);
      unit(i / 2) = (unit(i / 2) & others) | bits << (i % 2 * 16);
    } else {
      unit(i) = value;
    }
  }
  __device__ Wide<T> operator[](int i) const {
    if constexpr (kHasPairs && std::is_same_v<T, Bf16>) {
      return std::bit_cast<float>(i % 2 == 0 ? unit(i / 2) << 16 : unit(i / 2) & 0xffff0000U);
    } else {
      return widened(stored(i));
    }
  }
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
  using Result = Chunk<T, kCount>;
  Result chunk;
  for (int i = 0; i < kCount; i += Result::kInUnit) {
    if constexpr (!Result::kHasPairs) {
      chunk.unit(i) = narrowed<T>(values[i]);
    } else if constexpr (std::is_same_v<T, Bf16>) {
      chunk.unit(i / 2) = bf16_pair(values[i], values[i + 1]);
    } else {
      chunk.unit(i / 2) = f16_pair(values[i], values[i + 1]);
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
