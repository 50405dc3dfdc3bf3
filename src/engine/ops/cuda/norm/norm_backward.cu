// The gradient of layer norm and of RMS norm. With n = (x - mean) * rstd and g = dy * gamma:
//   dx = rstd * (g - mean(g) - n * mean(g * n)),   dgamma = sum over rows of dy * n,   dbeta = sum over rows of dy.
// In RMS norm mean and mean(g) are 0; the sums of dbeta are made and not kept.
// Blocks share the rows; their number depends on the shape alone. Each sums its part of dgamma and dbeta in registers
// while it reads dy and x once. The parts are then added in order. The gradient of the branch that was added to x
// before, dropout(dx), is written while dx is in registers.
#include <algorithm>

#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/kernels/chunks.h"
#include "ops/cuda/kernels/dropout.h"
#include "ops/cuda/kernels/reduce.h"
#include "ops/cuda/scratch_sizes.h"
#include "ops/storage.h"

namespace teratron {
namespace cuda {
namespace {

constexpr int kMostThreads = 384, kMostWarps = kMostThreads / kWarp;
constexpr int kAnyBlock = 256;

template <class T>
struct Gradient {
  T* dx;
  const T *dy, *x, *gamma;
  const float *mean, *rstd;  // mean is null in RMS norm
  std::int64_t rows, hidden;
  bool accumulate_dx;
  float* partial;  // [parts, dgamma and dbeta, hidden]
  T* dbranch = nullptr;
  ActivationMask activations = {};  // of dbranch

  __device__ bool is_rms() const { return mean == nullptr; }
  __device__ float mean_of(std::int64_t row) const { return is_rms() ? 0 : mean[row]; }
  __device__ std::int64_t begin(std::int64_t part) const { return rows * part / norm_gradient_parts(rows); }
};

// A thread's part of a row: kChunks chunks of 16 bytes of dy and x.
template <class T, int kChunks>
struct RowPart {
  static constexpr int kCount = Vector<T>::kSize;
  Chunk<T, kCount> dy[kChunks], x[kChunks], old[kChunks];  // old: dx as it is, where it is added to
  float mean, rstd;

  __device__ float normalised(int c, int e) const { return (x[c][e] - mean) * rstd; }
};

// Sums over the threads of each row of the block; one barrier, since two buffers alternate.
struct RowSums {
  float g = 0, gn = 0;

  __device__ void add_up(float (*of_warps)[2]) {
    g = reduce_warp<Plus>(g);
    gn = reduce_warp<Plus>(gn);
    const unsigned warps = blockDim.x / kWarp, first = threadIdx.y * warps;
    if (threadIdx.x % kWarp == 0) {
      of_warps[first + threadIdx.x / kWarp][0] = g;
      of_warps[first + threadIdx.x / kWarp][1] = gn;
    }
    __syncthreads();
    g = gn = 0;
#pragma unroll 2
    for (unsigned warp = first; warp < first + warps; ++warp) {
      g += of_warps[warp][0];
      gn += of_warps[warp][1];
    }
  }
};

// One thread of a block [rows at a time, threads of a row]: its columns of every row of one part.
template <class T, int kChunks>
struct Columns {
  static constexpr int kCount = Vector<T>::kSize;
  // With one chunk of a row, that of the next is loaded meanwhile; with more there is enough to load at a time.
  static constexpr bool kLoadsAhead = kChunks == 1;
  static constexpr int kBlocks = kChunks * kCount <= 8 ? 2 : 1;  // of a multiprocessor, as the registers allow
  const Gradient<T>& all;
  const float inverse;  // of the row's size
  // With one chunk, held: a load from cache would wait for those of the next row, which were started before it.
  Chunk<T, kCount> gamma[kLoadsAhead ? kChunks : 1];
  float dgamma[kChunks][kCount] = {}, dbeta[kChunks][kCount] = {};

  __device__ explicit Columns(const Gradient<T>& gradient)
      : all(gradient), inverse(1 / static_cast<float>(gradient.hidden)) {
    if constexpr (kLoadsAhead) gamma[0] = load_gamma(0);
  }

  __device__ std::int64_t column(int c) const { return (std::int64_t{c} * blockDim.x + threadIdx.x) * kCount; }
  __device__ bool inside(int c) const { return column(c) < all.hidden; }
  __device__ std::int64_t offset(std::int64_t row, int c) const {  // a chunk that is there, if not this thread's
    return row * all.hidden + (inside(c) ? column(c) : 0);
  }

  __device__ Chunk<T, kCount> load_gamma(int c) const { return load_chunk<kCount>(all.gamma + offset(0, c)); }
  __device__ Chunk<T, kCount> gamma_of(int c) const {
    if constexpr (kLoadsAhead) return gamma[c];
    return load_gamma(c);
  }

  __device__ void load(RowPart<T, kChunks>& part, std::int64_t row) const {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      part.dy[c] = load_chunk<kCount>(all.dy + offset(row, c));
      part.x[c] = load_chunk<kCount>(all.x + offset(row, c));
      if (all.accumulate_dx) part.old[c] = load_chunk<kCount>(all.dx + offset(row, c));
    }
    part.mean = all.mean_of(row);
    part.rstd = all.rstd[row];
  }

  // The row's share in dgamma and dbeta, and what dx needs of the whole row.
  __device__ RowSums reduce_row(const RowPart<T, kChunks>& part) {
    RowSums sums;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const Chunk<T, kCount> scale = gamma_of(c);
      float g_sum = 0, gn_sum = 0;
#pragma unroll
      for (int e = 0; e < kCount; ++e) {
        const float n = part.normalised(c, e), g = part.dy[c][e] * scale[e];
        dgamma[c][e] += part.dy[c][e] * n;
        dbeta[c][e] += part.dy[c][e];
        g_sum += g;
        gn_sum += g * n;
      }
      if (inside(c)) {
        sums.g += g_sum;
        sums.gn += gn_sum;
      }
    }
    return sums;
  }

  __device__ void write_dx(const RowPart<T, kChunks>& part, std::int64_t row, const RowSums& sums) const {
    const float mean_g = all.is_rms() ? 0 : sums.g * inverse, mean_gn = sums.gn * inverse;
    const RowMask mask = all.activations.row_mask(row);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (!inside(c)) continue;
      const Chunk<T, kCount> scale = gamma_of(c);
      float dx[kCount];
#pragma unroll
      for (int e = 0; e < kCount; ++e) {
        const float centred = part.dy[c][e] * scale[e] - mean_g;
        dx[e] = part.rstd * (centred - part.normalised(c, e) * mean_gn) + (all.accumulate_dx ? part.old[c][e] : 0);
      }
      const Chunk<T, kCount> stored = narrowed_chunk<kCount, T>(dx);
      store_chunk<kCount>(all.dx + row * all.hidden + column(c), stored);
      if (all.dbranch != nullptr) write_dbranch(mask, stored, row, c);
    }
  }

  // The bits of DropoutBackward of dx alone.
  __device__ void write_dbranch(const RowMask& mask, const Chunk<T, kCount>& dx, std::int64_t row, int c) const {
    T* const to = all.dbranch + row * all.hidden + column(c);
    if (!all.activations.mask.active()) return store_chunk(to, dx);
    float dbranch[kCount];
    mask.factors(all.activations.mask, column(c), dbranch);
    for (int e = 0; e < kCount; ++e) dbranch[e] = masked(dbranch[e], dx[e]);
    store_chunk<kCount>(to, dbranch);
  }

  __device__ void walk(std::int64_t begin, std::int64_t end) {
    __shared__ float of_warps[2][kMostWarps][2];
    const auto row_of_turn = [&](std::int64_t first) { return std::min(first + threadIdx.y, end - 1); };
    RowPart<T, kChunks> next;
    if constexpr (kLoadsAhead) load(next, row_of_turn(begin));
    bool odd = false;
    for (std::int64_t first = begin; first < end; first += blockDim.y, odd = !odd) {
      const std::int64_t row = row_of_turn(first);
      const bool mine = first + threadIdx.y < end;  // else there is no row left for this thread
      RowPart<T, kChunks> part;
      if constexpr (kLoadsAhead) {
        part = next;
        load(next, row_of_turn(first + blockDim.y));
      } else {
        load(part, row);
      }
      RowSums sums;
      if (mine) sums = reduce_row(part);
      sums.add_up(of_warps[odd]);
      if (mine) write_dx(part, row, sums);
    }
  }

  // Adds to the sums of the block's first row of threads those of the others, one after another.
  __device__ void gather() {
    float* const shared = dynamic_shared<float>() + threadIdx.x;
    for (unsigned y = 1; y < blockDim.y; ++y) {
      __syncthreads();
      visit_sums([&](unsigned i, float& sum) {
        if (threadIdx.y == y) shared[i * blockDim.x] = sum;
      });
      __syncthreads();
      visit_sums([&](unsigned i, float& sum) {
        if (threadIdx.y == 0) sum += shared[i * blockDim.x];
      });
    }
  }

  // visit(number, sum) for all that this thread has.
  template <class Visit>
  __device__ void visit_sums(const Visit& visit) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
#pragma unroll
      for (int e = 0; e < kCount; ++e) {
        visit(static_cast<unsigned>(c * kCount + e), dgamma[c][e]);
        visit(static_cast<unsigned>((kChunks + c) * kCount + e), dbeta[c][e]);
      }
    }
  }

  __device__ void write_sums(std::int64_t part) const {
    float* const to = all.partial + part * 2 * all.hidden;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (!inside(c) || threadIdx.y > 0) continue;
      store_chunk<kCount>(to + column(c), dgamma[c]);
      store_chunk<kCount>(to + all.hidden + column(c), dbeta[c]);
    }
  }
};

template <class T, int kChunks>
__global__ void __launch_bounds__(kMostThreads, Columns<T, kChunks>::kBlocks) differentiate(Gradient<T> gradient) {
  Columns<T, kChunks> columns(gradient);
  columns.walk(gradient.begin(blockIdx.x), gradient.begin(blockIdx.x + 1));
  columns.gather();
  columns.write_sums(blockIdx.x);
}

// dx of a row of any length and alignment, by a block.
template <class T>
__global__ void __launch_bounds__(kAnyBlock) differentiate_any_row(Gradient<T> all) {
  const std::int64_t row = blockIdx.x, begin = row * all.hidden;
  const float mean = all.mean_of(row), rstd = all.rstd[row], size = static_cast<float>(all.hidden);
  const auto normalised = [&](std::int64_t j) { return (widened(all.x[begin + j]) - mean) * rstd; };
  const auto g = [&](std::int64_t j) { return widened(all.dy[begin + j]) * widened(all.gamma[j]); };
  const RowMask mask = all.activations.row_mask(row);
  float g_sum = 0, gn_sum = 0;
  for (std::int64_t j = threadIdx.x; j < all.hidden; j += kAnyBlock) {
    g_sum += g(j);
    gn_sum += g(j) * normalised(j);
  }
  const float mean_g = all.is_rms() ? 0 : reduce<kAnyBlock, Plus>(g_sum) / size;
  const float mean_gn = reduce<kAnyBlock, Plus>(gn_sum) / size;
  for (std::int64_t j = threadIdx.x; j < all.hidden; j += kAnyBlock) {
    const float dx = rstd * (g(j) - mean_g - normalised(j) * mean_gn);
    const T stored = narrowed<T>(all.accumulate_dx ? widened(all.dx[begin + j]) + dx : dx);
    all.dx[begin + j] = stored;
    if (all.dbranch == nullptr) continue;
    float factor[1];
    mask.factors(all.activations.mask, j, factor);
    all.dbranch[begin + j] = narrowed<T>(masked(factor[0], widened(stored)));
  }
}

// The sums of a part, a column by a thread.
template <class T>
__global__ void __launch_bounds__(kAnyBlock) sum_any_columns(Gradient<T> all) {
  const std::int64_t j = std::int64_t{blockIdx.x} * kAnyBlock + threadIdx.x, part = blockIdx.y;
  if (j >= all.hidden) return;
  float dgamma = 0, dbeta = 0;
  for (std::int64_t row = all.begin(part); row < all.begin(part + 1); ++row) {
    const float dy = widened(all.dy[row * all.hidden + j]), x = widened(all.x[row * all.hidden + j]);
    dgamma += dy * ((x - all.mean_of(row)) * all.rstd[row]);
    dbeta += dy;
  }
  all.partial[part * 2 * all.hidden + j] = dgamma;
  all.partial[(part * 2 + 1) * all.hidden + j] = dbeta;
}

// A lane adds up a column: each warp every 16th part, and then the first warp the sums of the others.
constexpr int kPartWarps = 16;
__global__ void __launch_bounds__(kPartWarps* kWarp)
    add_up_parts(const float* partial, std::int64_t parts, std::int64_t hidden, float* dgamma, float* dbeta,
                 bool accumulate) {
  __shared__ float of_warps[kPartWarps][kWarp];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarp + lane;
  const bool inside = column < (dbeta == nullptr ? hidden : 2 * hidden);
  float sum = 0;
#pragma unroll 8
  for (std::int64_t part = warp; inside && part < parts; part += kPartWarps) sum += partial[part * 2 * hidden + column];
  of_warps[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || !inside) return;
  for (int other = 1; other < kPartWarps; ++other) sum += of_warps[other][lane];
  float* const to = column < hidden ? dgamma + column : dbeta + column - hidden;
  *to = accumulate ? *to + sum : sum;
}

// Threads for the columns of a row, whole warps of them, and rows until the block is full.
template <class T, int kChunks>
void launch_columns(cudaStream_t stream, const Gradient<T>& gradient) {
  constexpr std::int64_t kColumns = kChunks * Vector<T>::kSize;  // of a thread
  const auto width = static_cast<unsigned>((gradient.hidden + kColumns * kWarp - 1) / (kColumns * kWarp) * kWarp);
  const unsigned rows = kMostThreads / width;
  const std::size_t sums = rows == 1 ? 0 : 2 * kColumns * width * sizeof(float);
  launch(stream,
         {.grid = dim3(static_cast<unsigned>(norm_gradient_parts(gradient.rows))),
          .block = dim3(width, rows),
          .shared_bytes = sums},
         differentiate<T, kChunks>, gradient);
}

template <class T>
void launch_any(cudaStream_t stream, const Gradient<T>& gradient) {
  launch(stream, shape_for(gradient.rows * kAnyBlock, kAnyBlock), differentiate_any_row<T>, gradient);
  LaunchShape shape = shape_for(gradient.hidden, kAnyBlock);
  shape.grid.y = static_cast<unsigned>(norm_gradient_parts(gradient.rows));
  launch(stream, shape, sum_any_columns<T>, gradient);
}

template <class T>
Gradient<T> gradient_of(const NormBackward& args) {
  return {.dx = args.dx.as<T>(),
          .dy = args.dy.as<T>(),
          .x = args.x.as<T>(),
          .gamma = args.gamma.as<T>(),
          .mean = args.mean.as<float>(),
          .rstd = args.rstd.as<float>(),
          .rows = args.x.dim(0),
          .hidden = args.x.dim(1),
          .accumulate_dx = args.accumulate_dx};
}

template <class T>
void launch_gradient(cudaStream_t stream, const Gradient<T>& gradient) {
  constexpr int kCount = Vector<T>::kSize, kFew = 8 / kCount, kMany = 4;  // chunks of a thread
  const bool vectors = takes_vectors(gradient.dx, gradient.hidden) && takes_vectors(gradient.dy) &&
                       takes_vectors(gradient.x) && takes_vectors(gradient.gamma) && takes_vectors(gradient.dbranch);
  if (vectors && gradient.hidden <= kMostThreads * kFew * kCount) {
    launch_columns<T, kFew>(stream, gradient);
  } else if (vectors && gradient.hidden <= kMostThreads * kMany * kCount) {
    launch_columns<T, kMany>(stream, gradient);
  } else {
    launch_any(stream, gradient);
  }
}

void differentiate_norm(cudaStream_t stream, Scratch& scratch, const NormBackward& args, const DropoutBackward* below) {
  const std::int64_t rows = args.x.dim(0), hidden = args.x.dim(1);
  float* const partial = scratch.of<float>(norm_gradient_floats(rows, hidden));
  choose_by_storage(args.x.dtype, [&]<class T>(ElementType<T>) {
    Gradient<T> gradient = gradient_of<T>(args);
    gradient.partial = partial;
    if (below != nullptr) {
      gradient.dbranch = below->dbranch.as<T>();
      gradient.activations = ActivationMask(below->dropout, hidden, below->dsum.dim(1));
    }
    launch_gradient(stream, gradient);
  });
  if (!args.dgamma) return;
  launch(stream, shape_for(2 * hidden * kPartWarps, kPartWarps * kWarp), add_up_parts, partial,
         norm_gradient_parts(rows), hidden, args.dgamma.as<float>(), args.dbeta.as<float>(), args.accumulate);
}

}  // namespace
}  // namespace cuda

void CudaBackend::do_norm_backward(const NormBackward& args) {
  cuda::differentiate_norm(stream_, scratch_, args, nullptr);
}

void CudaBackend::do_residual_add_norm_backward(const ResidualAddNormBackward& args) {
  cuda::differentiate_norm(stream_, scratch_, args.norm, &args.add);
}

}  // namespace teratron
