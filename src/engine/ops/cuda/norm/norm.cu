// Layer norm and RMS norm, alone and fused with the residual connection before it. A row is read from memory once: it
// stays in the registers of a warp, or of a block where it is long. Only rows that are not aligned to 16 bytes, or that
// are longer than a block holds, are read again for every pass over them.
#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/kernels/chunks.h"
#include "ops/cuda/kernels/dropout.h"
#include "ops/cuda/kernels/reduce.h"
#include "ops/storage.h"

namespace teratron {
namespace cuda {
namespace {

constexpr int kBlock = 128;     // threads, where a warp takes a row
constexpr int kAnyBlock = 256;  // threads that share a row which is not held

// The rows to normalise, which lie at x: there already, or put there as residual + dropout(branch).
template <class T>
struct Rows {
  T *y, *x;
  const T *residual = nullptr, *branch = nullptr;
  const T *gamma, *beta;  // RMS norm has neither beta nor mean
  float *mean, *rstd;
  std::int64_t rows, hidden;
  float epsilon;
  bool has_statistics = false;  // mean and rstd are read, not written
  ActivationMask activations = {};

  template <int kCount>
  __device__ Chunk<T, kCount> sum(const RowMask& mask, std::int64_t j, const Chunk<T, kCount>& to,
                                  const Chunk<T, kCount>& from) const {
    float factors[kCount], values[kCount];
    mask.factors(activations.mask, j, factors);
    for (int e = 0; e < kCount; ++e) values[e] = to[e] + factors[e] * from[e];
    return narrowed_chunk<kCount, T>(values);
  }

  template <int kCount>
  __device__ void write(std::int64_t row, std::int64_t j, float row_mean, float row_rstd,
                        const float (&values)[kCount]) const {
    const auto scale = load_chunk<kCount>(gamma + j);
    float result[kCount];
    if (beta == nullptr) {
      for (int e = 0; e < kCount; ++e) result[e] = values[e] * row_rstd * scale[e];
    } else {
      const auto shift = load_chunk<kCount>(beta + j);
      for (int e = 0; e < kCount; ++e) result[e] = (values[e] - row_mean) * row_rstd * scale[e] + shift[e];
    }
    store_chunk<kCount>(y + row * hidden + j, result);
  }
};

// One of kThreads threads that hold a row in chunks of 16 bytes, kChunks each; chunks beyond the row are not `inside`.
template <class T, int kThreads, int kChunks>
struct HeldRow {
  static constexpr int kCount = Vector<T>::kSize;
  std::int64_t row, hidden;
  int thread;
  float values[kChunks][kCount];

  __device__ std::int64_t column(int c) const { return (std::int64_t{c} * kThreads + thread) * kCount; }
  __device__ bool inside(int c) const { return column(c) < hidden; }

  // All loads are started before the first is used, and none hangs on a condition.
  __device__ void load(Chunk<T, kCount> (&to)[kChunks], const T* from) const {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) to[c] = load_chunk<kCount>(from + row * hidden + (inside(c) ? column(c) : 0));
  }

  __device__ void take(const Rows<T>& rows) {
    Chunk<T, kCount> x[kChunks];
    if (rows.branch == nullptr) {
      load(x, rows.x);
    } else {
      Chunk<T, kCount> branch[kChunks];
      load(x, rows.residual);
      load(branch, rows.branch);
      const RowMask mask = rows.activations.row_mask(row);
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        if (!inside(c)) continue;
        x[c] = rows.template sum<kCount>(mask, column(c), x[c], branch[c]);
        store_chunk<kCount>(rows.x + row * hidden + column(c), x[c]);
      }
    }
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      for (int e = 0; e < kCount; ++e) values[c][e] = x[c][e];
    }
  }

  // term(value) summed over the row.
  template <class Term>
  __device__ float sum(const Term& term) const {
    float total = 0;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      float of_chunk = 0;
      for (int e = 0; e < kCount; ++e) of_chunk += term(values[c][e]);
      if (inside(c)) total += of_chunk;
    }
    return reduce<kThreads, Plus>(total);
  }
};

template <class T, int kThreads, int kChunks>
__global__ void __launch_bounds__(kThreads == kWarp ? kBlock : kThreads) normalise_held(Rows<T> rows) {
  constexpr int kRows = kThreads == kWarp ? kBlock / kWarp : 1;  // of a block
  HeldRow<T, kThreads, kChunks> held;
  held.row = std::int64_t{blockIdx.x} * kRows + threadIdx.x / kThreads;
  held.hidden = rows.hidden;
  held.thread = static_cast<int>(threadIdx.x % kThreads);
  if (held.row >= rows.rows) return;
  held.take(rows);
  const bool is_rms = rows.mean == nullptr;
  float mean = 0, rstd;
  if (rows.has_statistics) {
    if (!is_rms) mean = rows.mean[held.row];
    rstd = rows.rstd[held.row];
  } else {
    const auto size = static_cast<float>(rows.hidden);
    if (!is_rms) mean = held.sum([](float value) { return value; }) / size;
    const float squares = held.sum([=](float value) { return (value - mean) * (value - mean); });
    rstd = 1 / sqrtf(squares / size + rows.epsilon);
    if (held.thread == 0) {
      if (!is_rms) rows.mean[held.row] = mean;
      rows.rstd[held.row] = rstd;
    }
  }
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    if (held.inside(c)) rows.write(held.row, held.column(c), mean, rstd, held.values[c]);
  }
}

// A block takes a row, whatever its length and alignment.
template <class T>
__global__ void __launch_bounds__(kAnyBlock) normalise_any(Rows<T> rows) {
  const std::int64_t row = blockIdx.x, hidden = rows.hidden, begin = row * hidden;
  if (rows.branch != nullptr) {
    const RowMask mask = rows.activations.row_mask(row);
    for (std::int64_t j = threadIdx.x; j < hidden; j += kAnyBlock) {
      const auto to = load_chunk<1>(rows.residual + begin + j), from = load_chunk<1>(rows.branch + begin + j);
      store_chunk<1>(rows.x + begin + j, rows.template sum<1>(mask, j, to, from));
    }
  }
  const T* const x = rows.x + begin;  // of what was just stored, a thread reads its own
  const bool is_rms = rows.mean == nullptr;
  float mean = 0, rstd;
  if (rows.has_statistics) {
    if (!is_rms) mean = rows.mean[row];
    rstd = rows.rstd[row];
  } else {
    const auto size = static_cast<float>(hidden);
    float sum = 0, squares = 0;
    if (!is_rms) {
      for (std::int64_t j = threadIdx.x; j < hidden; j += kAnyBlock) sum += widened(x[j]);
      mean = reduce<kAnyBlock, Plus>(sum) / size;
    }
    for (std::int64_t j = threadIdx.x; j < hidden; j += kAnyBlock) {
      const float deviation = widened(x[j]) - mean;
      squares += deviation * deviation;
    }
    rstd = 1 / sqrtf(reduce<kAnyBlock, Plus>(squares) / size + rows.epsilon);
    if (threadIdx.x == 0) {
      if (!is_rms) rows.mean[row] = mean;
      rows.rstd[row] = rstd;
    }
  }
  for (std::int64_t j = threadIdx.x; j < hidden; j += kAnyBlock) {
    const float value[1] = {widened(x[j])};
    rows.write(row, j, mean, rstd, value);
  }
}

template <class T, int kThreads, int kValues>
void launch_held(cudaStream_t stream, const Rows<T>& rows) {
  constexpr int kThreadsOfBlock = kThreads == kWarp ? kBlock : kThreads;
  launch(stream, shape_for(rows.rows * kThreads, kThreadsOfBlock),
         normalise_held<T, kThreads, kValues / Vector<T>::kSize>, rows);
}

template <class T>
void normalise(cudaStream_t stream, const Rows<T>& rows) {
  const bool vectors = takes_vectors(rows.x, rows.hidden) && takes_vectors(rows.y) && takes_vectors(rows.residual) &&
                       takes_vectors(rows.branch) && takes_vectors(rows.gamma) && takes_vectors(rows.beta);
  if (!vectors || rows.hidden > 512 * 32) {
    launch(stream, shape_for(rows.rows * kAnyBlock, kAnyBlock), normalise_any<T>, rows);
  } else if (rows.hidden <= 32 * 32) {
    launch_held<T, 32, 32>(stream, rows);
  } else if (rows.hidden <= 32 * 48) {
    launch_held<T, 32, 48>(stream, rows);
  } else if (rows.hidden <= 32 * 64) {
    launch_held<T, 32, 64>(stream, rows);
  } else if (rows.hidden <= 128 * 32) {
    launch_held<T, 128, 32>(stream, rows);
  } else {
    launch_held<T, 512, 32>(stream, rows);
  }
}

template <class T>
Rows<T> rows_of(const NormForward& args) {
  return {.y = args.y.as<T>(),
          .x = args.x.as<T>(),
          .gamma = args.gamma.as<T>(),
          .beta = args.beta ? args.beta.as<T>() : nullptr,
          .mean = args.mean.as<float>(),
          .rstd = args.rstd.as<float>(),
          .rows = args.x.dim(0),
          .hidden = args.x.dim(1),
          .epsilon = static_cast<float>(args.epsilon)};
}

}  // namespace
}  // namespace cuda

void CudaBackend::do_norm_forward(const NormForward& args) {
  choose_by_storage(compute_dtype_, [&]<class T>(ElementType<T>) { cuda::normalise(stream_, cuda::rows_of<T>(args)); });
}

void CudaBackend::do_norm_apply(const NormForward& args) {
  choose_by_storage(compute_dtype_, [&]<class T>(ElementType<T>) {
    cuda::Rows<T> rows = cuda::rows_of<T>(args);
    rows.has_statistics = true;
    cuda::normalise(stream_, rows);
  });
}

void CudaBackend::do_residual_add_norm(const ResidualAddNorm& args) {
  choose_by_storage(compute_dtype_, [&]<class T>(ElementType<T>) {
    cuda::Rows<T> rows = cuda::rows_of<T>(args.norm);
    rows.residual = args.add.residual.as<T>();
    rows.branch = args.add.branch.as<T>();
    rows.activations = cuda::ActivationMask(args.add.dropout, rows.hidden, args.add.sum.dim(1));
    cuda::normalise(stream_, rows);
  });
}

}  // namespace teratron
