// Shared by the attention kernels for tensor cores (FlashAttention-2, Dao, arXiv 2307.08691): 16-bit types, heads of up
// to 64, 96 or 128 columns that are multiples of 8 (zeros fill the rest), rows that start on 16 bytes. A block is four
// warps. A warp owns rows of scores, which stay in registers: as accumulators of one product they are operands of the
// next, rounded to T. The other operands lie in shared memory in rows padded by 16 bytes, so that the eight addresses
// of an 8x8 matrix meet in no bank.
#pragma once

#include <type_traits>

#include "ops/cuda/attention/attention.h"
#include "ops/cuda/kernels/ptx.h"

namespace teratron::cuda {

constexpr int kMatrixWarps = 4, kMatrixThreads = 32 * kMatrixWarps;
constexpr int kLargestMatrixHead = 128;

template <int kHeadSize>
constexpr int kRowStride = kHeadSize + 8;  // of rows in shared memory, in elements

// [16 kRows16, 8 kColumns8] sums of a warp; lane l holds of each 16x8 part what ptx.h says.
template <int kRows16, int kColumns8>
struct WarpSums {
  MatrixC parts[kRows16][kColumns8];

  __device__ void clear() {
#pragma unroll
    for (int m = 0; m < kRows16; ++m) {
#pragma unroll
      for (int n = 0; n < kColumns8; ++n) parts[m][n] = {};
    }
  }
};

__device__ inline int lane_index() { return static_cast<int>(threadIdx.x) % 32; }
__device__ inline int warp_index() { return static_cast<int>(threadIdx.x) / 32; }
// Position of value e of a part within its 16 rows and 8 columns.
__device__ inline int part_row(int e) { return lane_index() / 4 + e / 2 * 8; }
__device__ inline int part_column(int e) { return lane_index() % 4 * 2 + e % 2; }

template <class T>
__device__ void multiply(MatrixC& c, const MatrixA& a, const MatrixB& b) {
  if constexpr (std::is_same_v<T, Bf16>) {
    multiply_bf16(c, a, b);
  } else {
    multiply_f16(c, a, b);
  }
}

template <class T>
__device__ std::uint32_t rounded_pair(float low, float high) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return bf16_pair(low, high);
  } else {
    return f16_pair(low, high);
  }
}

// kRows rows from `begin` on; zeros from row `end` and from column head_size on. Arrives when waited for.
template <int kRows, int kHeadSize, class T>
__device__ void start_rows(T* to, const HeadRows<const T>& from, int begin, int end, int head_size) {
  constexpr int kVectors = kHeadSize / 8;  // of a row
  static_assert(kRows * kVectors % kMatrixThreads == 0);
#pragma unroll
  for (int i = 0; i < kRows * kVectors / kMatrixThreads; ++i) {
    const int vector = static_cast<int>(threadIdx.x) + i * kMatrixThreads;
    const int row = vector / kVectors, column = vector % kVectors * 8;
    const bool given = begin + row < end && column < head_size;
    start_copy_16(to + row * kRowStride<kHeadSize> + column, given ? from(begin + row) + column : from.data, given);
  }
}

// Rows row .. row + 15 and columns 16 k .. 16 k + 15 as a left operand.
template <int kHeadSize, class T>
__device__ MatrixA left_operand(const T* rows, int row, int k) {
  const int lane = lane_index();
  return load_matrices(rows + (row + lane % 16) * kRowStride<kHeadSize> + k * 16 + lane / 16 * 8);
}

// sums += a b^T: `left(m, k)` gives part (m, k) of a, [16 kRows16, kHeadSize]; b is [8 kColumns8, kHeadSize].
template <class T, int kHeadSize, int kRows16, int kColumns8, class Left>
__device__ void multiply_by_rows(WarpSums<kRows16, kColumns8>& sums, const Left& left, const T* b) {
  static_assert(kColumns8 % 2 == 0);
  const int lane = lane_index();
  const T* const from = b + (lane / 16 * 8 + lane % 8) * kRowStride<kHeadSize> + lane / 8 % 2 * 8;
  // Where accumulators leave little room, loads must not run far ahead.
  [[maybe_unused]] constexpr int kUnrolled = kRows16 * kHeadSize > 192 ? 2 : kHeadSize / 16;
#pragma unroll kUnrolled
  for (int k = 0; k < kHeadSize / 16; ++k) {
    MatrixA a[kRows16];
#pragma unroll
    for (int m = 0; m < kRows16; ++m) a[m] = left(m, k);
#pragma unroll
    for (int n = 0; n < kColumns8; n += 2) {
      const MatrixA two = load_matrices(from + n * 8 * kRowStride<kHeadSize> + k * 16);
#pragma unroll
      for (int m = 0; m < kRows16; ++m) {
        multiply<T>(sums.parts[m][n], a[m], {two[0], two[1]});
        multiply<T>(sums.parts[m][n + 1], a[m], {two[2], two[3]});
      }
    }
  }
}

// sums += weights b, weights rounded to T; b is [8 kDepth8, kHeadSize].
template <class T, int kHeadSize, int kRows16, int kDepth8>
__device__ void add_weighted(WarpSums<kRows16, kHeadSize / 8>& sums, const WarpSums<kRows16, kDepth8>& weights,
                             const T* b) {
  static_assert(kDepth8 % 2 == 0);
  const int lane = lane_index();
  const T* const from = b + lane % 16 * kRowStride<kHeadSize> + lane / 16 * 8;
#pragma unroll
  for (int k = 0; k < kDepth8; k += 2) {
    MatrixA a[kRows16];
#pragma unroll
    for (int m = 0; m < kRows16; ++m) {
      const MatrixC &left = weights.parts[m][k], &right = weights.parts[m][k + 1];
      a[m] = {rounded_pair<T>(left[0], left[1]), rounded_pair<T>(left[2], left[3]), rounded_pair<T>(right[0], right[1]),
              rounded_pair<T>(right[2], right[3])};
    }
#pragma unroll
    for (int n = 0; n < kHeadSize / 8; n += 2) {
      const MatrixA two = load_matrices_transposed(from + k * 8 * kRowStride<kHeadSize> + n * 8);
#pragma unroll
      for (int m = 0; m < kRows16; ++m) {
        multiply<T>(sums.parts[m][n], a[m], {two[0], two[1]});
        multiply<T>(sums.parts[m][n + 1], a[m], {two[2], two[3]});
      }
    }
  }
}

// Parts of a left operand that stay in registers, where there is room for them, or are loaded when needed.
template <class T, int kHeadSize, int kRows16, bool kStays>
class LeftOperand {
 public:
  // Rows are in shared memory by now, and stay there unless kStays.
  __device__ void load(const T* rows, int first_row) {
    rows_ = rows;
    first_row_ = first_row;
    if constexpr (kStays) {
#pragma unroll
      for (int m = 0; m < kRows16; ++m) {
#pragma unroll
        for (int k = 0; k < kHeadSize / 16; ++k) parts_[m][k] = left_operand<kHeadSize>(rows, first_row + 16 * m, k);
      }
    }
  }

  __device__ MatrixA operator()(int m, int k) const {
    if constexpr (kStays) {
      return parts_[m][k];
    } else {
      return left_operand<kHeadSize>(rows_, first_row_ + 16 * m, k);
    }
  }

 private:
  const T* rows_ = nullptr;
  int first_row_ = 0;
  MatrixA parts_[kStays ? kRows16 : 1][kStays ? kHeadSize / 16 : 1] = {};
};

// Draws the bits of `kEights` times eight keys of a query from `key` on, four times eight to a word. The blocks do not
// depend on each other, which hides the latency of each.
template <int kEights>
__device__ void draw_eights(std::uint32_t* words, const AttentionMask& mask, const HeadMask& head, int query, int key) {
  std::uint32_t eights[kEights];
  if (mask.is_aligned(head)) {
#pragma unroll
    for (int i = 0; i < kEights; ++i) eights[i] = mask.kept_of_aligned_8(head, query, key + 8 * i);
  } else {
#pragma unroll
    for (int i = 0; i < kEights; ++i) eights[i] = mask.kept_of_8(head, query, key + 8 * i);
  }
#pragma unroll
  for (int i = 0; i < kEights; ++i) words[i / 4] = (i % 4 == 0 ? 0 : words[i / 4]) | eights[i] << (i % 4 * 8);
}

// The mask of kQueries queries and kKeys keys as a warp draws it for itself, in registers: kLanes lanes draw a query's
// keys, eight at a time. All lanes call draw() and keys_of(), which exchanges.
template <int kQueries, int kKeys>
class WarpMask {
  static constexpr int kLanes = 32 / kQueries, kEights = kKeys / 8 / kLanes;  // of a query; of a lane
  static_assert(kLanes * kQueries == 32 && kLanes <= 2 && kLanes * kEights * 8 == kKeys);
  static_assert(kLanes == 1 || kEights <= 2);

 public:
  __device__ void draw(const AttentionMask& mask, const HeadMask& head, int query, int key) {
    const int own_query = query + lane_index() % kQueries, own_key = key + lane_index() / kQueries * kEights * 8;
    draw_eights<kEights>(words_, mask, head, own_query, own_key);
  }

  // Bit i: whether key 32 word + i of a query is kept.
  __device__ std::uint32_t keys_of(int query, int word = 0) const {
    std::uint32_t keys = __shfl_sync(0xffffffffU, words_[word], query);
    if constexpr (kLanes == 2) keys |= __shfl_sync(0xffffffffU, words_[word], query + kQueries) << (kEights * 8);
    return keys;
  }

 private:
  std::uint32_t words_[(kEights + 3) / 4];
};

// Statistics of a lane's two rows.
struct RowStatistics {
  QueryStatistics of_row[2];

  __device__ RowStatistics(const QueryStatistics* of_head, int query, int queries) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = query + part_row(2 * half);
      of_row[half] = row < queries ? of_head[row] : QueryStatistics{0, 0};
    }
  }
};

// Neighbouring columns of a row.
template <class T>
__device__ void store_pair(T* to, float low, float high) {
  *reinterpret_cast<std::uint32_t*>(to) = rounded_pair<T>(low, high);
}

struct alignas(8) FloatPair {
  float low, high;
};

template <class T>
__device__ void store_gradient_pair(const KeyGradients<T>& gradients, int b, int h, int key, int column, float low,
                                    float high) {
  if (gradients.keeps_sums) {
    auto* const to = reinterpret_cast<FloatPair*>(gradients.sums.head(b, h)(key) + column);
    const FloatPair old = gradients.accumulate ? *to : FloatPair{0, 0};
    *to = {old.low + low, old.high + high};
  } else {
    T* const to = gradients.rounded.head(b, h)(key) + column;
    const std::uint32_t old = gradients.accumulate ? *reinterpret_cast<const std::uint32_t*>(to) : 0;
    T pair[2];
    pair[0].bits = static_cast<std::uint16_t>(old);
    pair[1].bits = static_cast<std::uint16_t>(old >> 16);
    store_pair(to, widened(pair[0]) + low, widened(pair[1]) + high);
  }
}

// call(std::integral_constant) with the head size, among those that there are kernels for, that has room for this one.
template <class Call>
void with_head_size(int head_size, const Call& call) {
  if (head_size <= 64) {
    call(std::integral_constant<int, 64>());
  } else if (head_size <= 96) {
    call(std::integral_constant<int, 96>());
  } else {
    call(std::integral_constant<int, 128>());
  }
}

template <class Call>
void with_half_type(DType dtype, const Call& call) {
  dtype == DType::kBF16 ? call(ElementType<Bf16>()) : call(ElementType<F16>());
}

// Whether the types, head sizes and rows are what kernels for tensor cores take.
bool fits_matrices(const AttentionForward& args);
bool fits_matrices(const AttentionBackward& args);

// The kernels. Their rules are checked in attention.cu.
void attend_matrices(cudaStream_t stream, const AttentionForward& args);
void add_key_gradients_matrices(cudaStream_t stream, const AttentionBackward& args, const QueryStatistics* statistics);
void add_query_gradients_matrices(cudaStream_t stream, const AttentionBackward& args,
                                  const QueryStatistics* statistics);

}  // namespace teratron::cuda
