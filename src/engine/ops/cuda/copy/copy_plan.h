// CopyPlan: cuts a copy between views of any strides into pieces, such that a thread computes its offsets once for
// several chunks of elements, and without a division.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace teratron::cuda {

// Divisor of integers below 2^31: a product and a shift in place of dozens of a GPU's instructions.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::int64_t value);  // 1 .. 2^31 - 1

  __device__ std::uint32_t quotient(std::uint32_t number) const {
    return (static_cast<std::uint32_t>(std::uint64_t{number} * factor_ >> 32) + number) >> shift_;
  }
  __host__ __device__ std::uint32_t value() const { return value_; }

 private:
  std::uint32_t value_ = 1, factor_ = 1, shift_ = 0;
};

struct CopyViews {
  TensorRef to, from;  // of one shape
};

// Views of the same pairs of elements with as few axes as possible: none of size 1, the neighbours in `to` along the
// last one, and two axes merged where both views are contiguous there. The order of the axes is not kept.
CopyViews collapsed(CopyViews views);

// Collapsed views cut along their first axis, into parts of at most `most` elements.
std::vector<CopyViews> parts_of(const CopyViews& views, std::int64_t most);

// Whether rows of collapsed views are chunks of that many elements, which vectors may be loaded from and stored to.
bool takes_chunks(const CopyViews& views, std::int64_t elements_of_chunk);

// Work of the lanes that a row of collapsed views gets, a power of two of a block's threads: a piece is up to kChunks
// chunks for each of them. Pieces of a row follow each other.
struct CopyPlan {
  static constexpr int kThreads = 256, kChunks = 4;

  std::uint32_t pieces = 1;
  int lanes = 1, lane_bits = 0;     // 2^lane_bits
  std::int64_t row_chunks = 1;      // of a row
  std::int64_t to_step, from_step;  // elements from a chunk to the next of its row
  int axes = 0;                     // of pieces: those of a row first, then the views' from the last but one
  Divisor sizes[kMaxRank];          // of these axes
  std::int64_t to_strides[kMaxRank], from_strides[kMaxRank];

  // `views` are collapsed and have less than 2^31 elements. Chunks of more than one element need takes_chunks().
  CopyPlan(const CopyViews& views, std::int64_t elements_of_chunk);

  __host__ __device__ std::int64_t piece_chunks() const { return std::int64_t{lanes} * kChunks; }

 private:
  void add_axis(std::int64_t size, std::int64_t to_stride, std::int64_t from_stride);
};

}  // namespace teratron::cuda
