// The gradients of the embedding tables, without atomics: the same bits every time. Rows are first sorted by the entry
// of the table that they used, by counting for each how many come before it. A group of 32 sorted rows is then summed
// by one warp, run after run of rows of one entry. A run that lies within its group is an entry's whole gradient; of
// one that goes on in the next group, what each group has is kept, and added up at the end. So it does not matter how
// often the most frequent entry is used.
#include <algorithm>
#include <limits>

#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/kernels/chunks.h"
#include "ops/cuda/kernels/dropout.h"
#include "ops/cuda/scratch_sizes.h"
#include "ops/storage.h"

namespace teratron {
namespace cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kInFlight = 8;                                            // rows loaded before the first is added
constexpr std::int32_t kNoEntry = std::numeric_limits<int>::max() - 1;  // sorts after all that are here
constexpr int kGroup = kEmbeddingGroup;

// Row `order[i]` of dy used entry `entries[i]`; equal entries follow each other in the order of their rows.
struct SortedRows {
  std::int32_t *entries, *order;
  std::int64_t count;

  __device__ bool is_first(std::int64_t i) const { return i == 0 || entries[i - 1] != entries[i]; }
};

__device__ inline std::int32_t entry_of(std::int32_t id, std::int64_t vocab_begin, std::int64_t vocabulary) {
  const std::int64_t entry = id - vocab_begin;
  return entry >= 0 && entry < vocabulary ? static_cast<std::int32_t>(entry) : kNoEntry;
}

// A lane counts for one row, a warp in one slice of every tile of rows; the counts of the block's warps are added up.
constexpr int kSortWarps = 8, kSlice = 128, kTile = kSortWarps * kSlice;
__global__ void __launch_bounds__(kSortWarps* kWarp)
    sort_rows(const std::int32_t* ids, std::int64_t vocab_begin, std::int64_t vocabulary, SortedRows sorted) {
  __shared__ Vector<std::int32_t> tile[kTile / 4];
  __shared__ std::int32_t counts[kSortWarps][kWarp];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::int64_t block = std::int64_t{blockIdx.x} * kWarp, row = block + lane;
  const std::int32_t entry = row < sorted.count ? entry_of(ids[row], vocab_begin, vocabulary) : kNoEntry;
  std::int32_t before = 0;
  for (std::int64_t first = 0; first < sorted.count; first += kTile) {
    __syncthreads();
    for (unsigned i = threadIdx.x; i < kTile; i += kSortWarps * kWarp) {
      const std::int64_t other = first + i;
      tile[i / 4][static_cast<int>(i % 4)] =
          other < sorted.count ? entry_of(ids[other], vocab_begin, vocabulary) : kNoEntry + 1;
    }
    __syncthreads();
    // Equal entries are ordered by row. A slice lies before or after all of the block's rows, or around.
    const std::int64_t slice = first + warp * kSlice;
    const Vector<std::int32_t>* const entries = tile + warp * (kSlice / 4);
    if (slice + kSlice <= block || slice >= block + kWarp) {
      const std::int32_t limit = slice < block ? entry + 1 : entry;
#pragma unroll 16
      for (int i = 0; i < kSlice; ++i) before += entries[i / 4][i % 4] < limit ? 1 : 0;
    } else {
      for (int i = 0; i < kSlice; ++i) {
        before += entries[i / 4][i % 4] < entry + (slice + i < row ? 1 : 0) ? 1 : 0;
      }
    }
  }
  counts[warp][lane] = before;
  __syncthreads();
  if (warp > 0 || row >= sorted.count) return;
  for (int other = 1; other < kSortWarps; ++other) before += counts[other][lane];
  sorted.entries[before] = entry;
  sorted.order[before] = static_cast<std::int32_t>(row);
}

template <class T>
struct Gradients {
  float *table, *parts;  // of the entries, or of positions from that of the first token on; [2 groups, hidden]
  const T* dy;
  std::int64_t batch, length, hidden;
  bool accumulate;
  ActivationMask activations;
};

// Columns of a thread, and their sums.
template <class T, int kCount>
struct Sum {
  const Gradients<T>& all;
  std::int64_t j;
  float values[kCount] = {};

  __device__ Sum(const Gradients<T>& gradients, std::int64_t column) : all(gradients), j(column) {}

  __device__ Chunk<T, kCount> load(std::int64_t row) const { return load_chunk<kCount>(all.dy + row * all.hidden + j); }

  __device__ void add(std::int64_t b, std::int64_t t, const Chunk<T, kCount>& dy) {
    float factors[kCount];
    for (int e = 0; e < kCount; ++e) factors[e] = 1;
    if (all.activations.mask.active()) all.activations.mask.factors(all.activations.row(b, t) + j, factors);
    for (int e = 0; e < kCount; ++e) values[e] += factors[e] * dy[e];
  }

  __device__ void store(float* row, bool accumulate) {
    if (accumulate) {
      const auto old = load_chunk<kCount>(row + j);
      for (int e = 0; e < kCount; ++e) values[e] += old[e];
    }
    store_chunk<kCount>(row + j, values);
    for (int e = 0; e < kCount; ++e) values[e] = 0;
  }
};

// Slot of a group's share of a run that other groups share: its first run, or else its last.
__device__ inline std::int64_t part_of(std::int64_t group, bool is_first_run) {
  return 2 * group + (is_first_run ? 0 : 1);
}

// Block (group, columns).
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) sum_groups(SortedRows sorted, Gradients<T> all) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * kGroup;
  const std::int64_t end = begin + kGroup < sorted.count ? begin + kGroup : sorted.count;
  Sum<T, kCount> sum(all, (std::int64_t{blockIdx.y} * kThreads + threadIdx.x) * kCount);
  if (sum.j >= all.hidden) return;
  std::int32_t entry = sorted.entries[begin];
  bool begins_here = sorted.is_first(begin), is_first_run = true;
  for (std::int64_t first = begin; first < end; first += kInFlight) {
    Chunk<T, kCount> loaded[kInFlight];
    for (int i = 0; i < kInFlight; ++i) loaded[i] = sum.load(sorted.order[first + i < end ? first + i : first]);
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const std::int64_t at = first + i;
      if (at >= end || entry == kNoEntry) return;  // and so are all after it
      const auto row = static_cast<std::uint32_t>(sorted.order[at]), length = static_cast<std::uint32_t>(all.length);
      sum.add(row / length, row % length, loaded[i]);
      const std::int32_t next = at + 1 < sorted.count ? sorted.entries[at + 1] : kNoEntry;
      if (next == entry && at + 1 < end) continue;
      if (begins_here && next != entry) {
        sum.store(all.table + entry * all.hidden, all.accumulate);
      } else {
        sum.store(all.parts + part_of(blockIdx.x, is_first_run) * all.hidden, false);
      }
      entry = next;
      begins_here = true;
      is_first_run = false;
    }
  }
}

// Adds up the runs that begin in a group and go on in the next. Block (group, columns).
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) add_groups(SortedRows sorted, Gradients<T> all) {
  Sum<T, kCount> sum(all, (std::int64_t{blockIdx.y} * kThreads + threadIdx.x) * kCount);
  const std::int64_t begin = std::int64_t{blockIdx.x} * kGroup, next = begin + kGroup;
  if (sum.j >= all.hidden || next >= sorted.count) return;
  const std::int32_t entry = sorted.entries[next];
  const bool from_begin = sorted.entries[begin] == entry;
  if (entry == kNoEntry || sorted.entries[next - 1] != entry || (from_begin && !sorted.is_first(begin))) return;
  const auto add_part = [&](std::int64_t part) {
    const auto values = load_chunk<kCount>(all.parts + part * all.hidden + sum.j);
    for (int e = 0; e < kCount; ++e) sum.values[e] += values[e];
  };
  add_part(part_of(blockIdx.x, from_begin));
  for (std::int64_t i = next; i < sorted.count && sorted.entries[i] == entry; i += kGroup) {
    add_part(part_of(i / kGroup, true));
  }
  sum.store(all.table + entry * all.hidden, all.accumulate);
}

// Sums one position over all samples. Block (position, columns).
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) sum_positions(Gradients<T> all) {
  const std::int64_t t = blockIdx.x;
  Sum<T, kCount> sum(all, (std::int64_t{blockIdx.y} * kThreads + threadIdx.x) * kCount);
  if (sum.j >= all.hidden) return;
  for (std::int64_t first = 0; first < all.batch; first += kInFlight) {
    Chunk<T, kCount> loaded[kInFlight];
    for (int i = 0; i < kInFlight; ++i) {
      loaded[i] = sum.load((first + i < all.batch ? first + i : first) * all.length + t);
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (first + i < all.batch) sum.add(first + i, t, loaded[i]);
    }
  }
  sum.store(all.table + t * all.hidden, all.accumulate);
}

LaunchShape columns_of(std::int64_t blocks, std::int64_t hidden, int count) {
  LaunchShape shape = shape_for(blocks * kThreads, kThreads);
  shape.grid.y = static_cast<unsigned>((hidden + kThreads * count - 1) / (kThreads * count));
  return shape;
}

}  // namespace
}  // namespace cuda

void CudaBackend::do_embedding_backward(const EmbeddingBackward& args) {
  const std::int64_t length = args.dy.dim(1), hidden = args.dy.dim(2), rows = args.ids.elements();
  const std::int64_t groups = cuda::embedding_groups(rows);
  if (args.dtokens && !args.accumulate_tokens) do_fill(args.dtokens, 0);
  if (args.dpositions && !args.accumulate_positions) do_fill(args.dpositions, 0);
  float* const parts = scratch_.of<float>(cuda::embedding_gradient_floats(rows, hidden));
  auto* const numbers = reinterpret_cast<std::int32_t*>(parts + 2 * groups * hidden);
  const cuda::SortedRows sorted = {.entries = numbers, .order = numbers + groups * cuda::kGroup, .count = rows};
  choose_by_storage(compute_dtype_, [&]<class T>(ElementType<T>) {
    const auto with_table = [&](float* table, bool accumulate, const auto& work) {
      const cuda::Gradients<T> all = {.table = table,
                                      .parts = parts,
                                      .dy = args.dy.as<T>(),
                                      .batch = args.dy.dim(0),
                                      .length = length,
                                      .hidden = hidden,
                                      .accumulate = accumulate,
                                      .activations = cuda::ActivationMask(args.dropout, hidden)};
      cuda::choose_chunk<T>(cuda::takes_vectors(all.dy, hidden) && cuda::takes_vectors(all.table),
                            [&](auto count) { work(all, count); });
    };
    // Adds the gradients of entries that rows of dy used; `begin` is the id of the table's first entry here.
    const auto add_entries = [&](const TensorRef& table, const TensorRef& ids, std::int64_t begin, bool accumulate) {
      with_table(table.as<float>(), accumulate, [&](const cuda::Gradients<T>& all, auto count) {
        constexpr int kSortThreads = cuda::kSortWarps * cuda::kWarp;
        cuda::launch(stream_, cuda::shape_for(groups * kSortThreads, kSortThreads), cuda::sort_rows,
                     ids.as<std::int32_t>(), begin, table.dim(0), sorted);
        cuda::launch(stream_, cuda::columns_of(groups, hidden, count), cuda::sum_groups<T, count>, sorted, all);
        cuda::launch(stream_, cuda::columns_of(groups, hidden, count), cuda::add_groups<T, count>, sorted, all);
      });
    };
    if (args.dpositions && args.position_ids) {
      add_entries(args.dpositions, args.position_ids, 0, args.accumulate_positions);
    } else if (args.dpositions) {
      with_table(args.dpositions.as<float>() + args.first_position * hidden, args.accumulate_positions,
                 [&](const cuda::Gradients<T>& all, auto count) {
                   cuda::launch(stream_, cuda::columns_of(length, hidden, count), cuda::sum_positions<T, count>, all);
                 });
    }
    if (args.dtokens) add_entries(args.dtokens, args.ids, args.vocab_begin, args.accumulate_tokens);
  });
}

}  // namespace teratron
