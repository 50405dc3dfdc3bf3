// Attention forward as FlashAttention-3 computes it (Shah et al., arXiv 2407.08608) on Hopper: a warp copies tiles of
// keys and values by tensor maps, and two warpgroups of 64 queries each multiply them. A warpgroup's softmax overlaps
// the other's products, which take turns, and its own: scores of a tile are computed while values of the tile before
// are added. The mask is that of all our kernels: the positions of keys and queries, documents, and dropout by
// position.
#include "ops/cuda/attention/attention_hopper.h"

#include "base/error.h"
#include "ops/cuda/attention/attention.h"
#include "ops/cuda/attention/attention_matrices.h"
#include "ops/cuda/attention/hopper_softmax.h"
#include "ops/cuda/kernels/hopper.h"
#include "ops/cuda/runtime/device.h"
#include "ops/cuda/runtime/tensor_map.h"

namespace teratron::cuda {
namespace {

constexpr int kHopperThreads = 3 * kWarpgroup;  // those that copy, and two warpgroups that multiply
constexpr int kGroupQueries = 64, kBlockQueries = 2 * kGroupQueries;
constexpr int kStages = 2;                        // tiles of keys, and of values, in shared memory
constexpr std::uint32_t kSharedAlignment = 1024;  // of swizzled rows: eight of 128 bytes

// Columns of a panel: its rows are as wide as a swizzle's span, and heads are whole panels.
template <int kHeadSize>
constexpr int kPanel = kHeadSize % 64 == 0 ? 64 : 32;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr int kConsumers = 2 * kWarpgroup, kConsumerWarps = kConsumers / kWarp;
// 65536 registers on 384 threads, at most 168 each when the kernel starts.
constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;
// Numbers of barriers: a warpgroup's turn to start products is 1 or 2.
constexpr int kTurns = 1, kPaddingCleared = 3;

template <class T, int kHeadSize>
struct HopperMemory {
  // By panels of columns.
  T q[2][kGroupQueries * kHeadSize];
  T k[kStages][kTileKeys * kHeadSize];
  T v[kStages][kTileKeys * kHeadSize];
  Mbarrier q_given, k_given[kStages], v_given[kStages], k_free[kStages], v_free[kStages];
};

// Tiles [first, end) of keys that a block looks at, and the text's keys.
struct TileRange {
  int first, end, text_keys;
  __device__ int count() const { return end - first; }
};

template <class T, int kHeadSize>
__device__ HopperMemory<T, kHeadSize>& hopper_memory() {
  unsigned char* const memory = dynamic_shared<unsigned char>();
  const std::uint32_t past = shared_address(memory) % kSharedAlignment;
  return *reinterpret_cast<HopperMemory<T, kHeadSize>*>(memory + (past == 0 ? 0 : kSharedAlignment - past));
}

// The rows of a head from `row` on, to one panel after another.
template <int kRows, int kHeadSize, class T>
__device__ void start_panels(T* to, const CUtensorMap& map, const Mbarrier& counts, int b, int head, int row) {
  constexpr int kColumns = kPanel<kHeadSize>;
#pragma unroll
  for (int column = 0; column < kHeadSize; column += kColumns) {
    start_tensor_copy(to + column * kRows, map, counts, column, head, row, b);
  }
}

// The one thread that copies.
template <class T, int kHeadSize>
__device__ void produce(HopperMemory<T, kHeadSize>& memory, const CUtensorMap& q, const CUtensorMap& k,
                        const CUtensorMap& v, const HeadTile& at, int key_head, const TileRange& tiles) {
  memory.q_given.arrive_and_expect(sizeof(memory.q));
#pragma unroll
  for (int group = 0; group < 2; ++group) {
    start_panels<kGroupQueries, kHeadSize>(memory.q[group], q, memory.q_given, at.b, at.h,
                                           at.tile * kBlockQueries + group * kGroupQueries);
  }
#pragma unroll 1
  for (int n = 0; n < tiles.count(); ++n) {
    const int stage = n % kStages, key = (tiles.first + n) * kTileKeys;
    memory.k_free[stage].wait_for(n / kStages - 1);
    memory.k_given[stage].arrive_and_expect(sizeof(memory.k[stage]));
    start_panels<kTileKeys, kHeadSize>(memory.k[stage], k, memory.k_given[stage], at.b, key_head, key);
    memory.v_free[stage].wait_for(n / kStages - 1);
    memory.v_given[stage].arrive_and_expect(sizeof(memory.v[stage]));
    start_panels<kTileKeys, kHeadSize>(memory.v[stage], v, memory.v_given[stage], at.b, key_head, key);
  }
}

// A warpgroup's 64 queries.
template <class T, int kHeadSize>
class Consumer {
  using Memory = HopperMemory<T, kHeadSize>;
  static constexpr int kColumns = kPanel<kHeadSize>;

 public:
  __device__ Consumer(Memory& memory, const AttentionSizes& sizes, const AttentionMask& mask, const HeadTile& at,
                      const TileRange& tiles, int group)
      : memory_(memory),
        sizes_(sizes),
        mask_(mask),
        head_mask_(mask.of_head(at.b, at.h)),
        tiles_(tiles),
        group_(group),
        query_(at.tile * kBlockQueries + group_ * kGroupQueries + warp_index() % 4 * 16),
        bounds_(sizes, at.b, query_) {}

  __device__ void attend() {
#pragma unroll
    for (float& sum : out_) sum = 0;
    memory_.q_given.wait_for(0);
    memory_.k_given[0].wait_for(0);
    start_scores(0);
    if (mask_.active()) tile_mask_.draw(mask_, head_mask_, query_, tiles_.first * kTileKeys);
    wait_for_products<0>();
    hold(scores_);
    release(memory_.k_free[0]);
    float correction[2];
    make_weights(0, correction);
    round_weights();
    const int last = tiles_.count() - 1;
    if (last > 0 && group_ == 1) arrive_at_barrier<kConsumers>(kTurns);
#pragma unroll 1
    for (int n = 1; n <= last; ++n) attend_tile(n, n == last);
    add_last_values(last);
  }

  __device__ void store(const ForwardViews<T>& views, const HeadTile& at) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = state_.sum[half];
      sum += __shfl_xor_sync(0xffffffffU, sum, 1);
      sum += __shfl_xor_sync(0xffffffffU, sum, 2);
      const int row = query_ + part_row(2 * half);
      if (row >= sizes_.queries) continue;
      if (lane_index() % 4 == 0) {
        views.log_sum_exp[sizes_.first_row(at.b, at.h) + row] = state_.max[half] * sizes_.scale + logf(sum);
      }
      const float factor = mask_.scale() / sum;
      T* const to = views.out.head(at.b, at.h)(row) + part_column(0);
#pragma unroll
      for (int n = 0; n < kHeadSize / 8; ++n) {
        const float* const pair = out_ + 4 * n + 2 * half;
        if (8 * n < sizes_.head_size) store_pair(to + 8 * n, pair[0] * factor, pair[1] * factor);
      }
    }
  }

 private:
  // Scores of tile n while values of tile n - 1 are added.
  __device__ void attend_tile(int n, bool is_last) {
    const int before = n - 1;
    memory_.k_given[n % kStages].wait_for(n / kStages);
    wait_at_barrier<kConsumers>(kTurns + group_);
    start_scores(n % kStages);
    memory_.v_given[before % kStages].wait_for(before / kStages);
    start_values(before % kStages);
    if (group_ == 0 || !is_last) arrive_at_barrier<kConsumers>(kTurns + 1 - group_);
    if (mask_.active()) tile_mask_.draw(mask_, head_mask_, query_, (tiles_.first + n) * kTileKeys);
    wait_for_products<1>();
    hold(scores_);
    release(memory_.k_free[n % kStages]);
    float correction[2];
    make_weights(n, correction);
    wait_for_products<0>();
    hold(out_);
    hold(weights_);
    release(memory_.v_free[before % kStages]);
#pragma unroll
    for (int i = 0; i < kHeadSize / 2; ++i) out_[i] *= correction[i % 4 / 2];
    round_weights();
  }

  __device__ void add_last_values(int n) {
    const int stage = n % kStages;
    memory_.v_given[stage].wait_for(n / kStages);
    if (sizes_.lengths != nullptr) clear_padding(stage);
    start_values(stage);
    wait_for_products<0>();
    hold(out_);
  }

  // One group of products.
  __device__ void start_scores(int stage) {
    const std::uint64_t q = matrix_descriptor<kColumns>(memory_.q[group_], 16),
                        k = matrix_descriptor<kColumns>(memory_.k[stage], 16);
    hold(scores_);
    fence_products();
#pragma unroll
    for (int column = 0; column < kHeadSize; column += 16) {
      const std::uint32_t panel = column / kColumns * kColumns * sizeof(T), within = column % kColumns * sizeof(T);
      multiply_rows<T>(scores_, moved_by(q, panel * kGroupQueries + within), moved_by(k, panel * kTileKeys + within),
                       column > 0);
    }
    commit_products();
  }

  __device__ void start_values(int stage) {
    constexpr std::uint32_t kPanelBytes = kTileKeys * kColumns * sizeof(T), kStep = 16 * kColumns * sizeof(T);
    const std::uint64_t v = matrix_descriptor<kColumns>(memory_.v[stage], kPanelBytes);
    hold(out_);
    hold(weights_);
    fence_products();
#pragma unroll
    for (int i = 0; i < kTileKeys / 16; ++i) add_weighted_rows<T>(out_, weights_ + 4 * i, moved_by(v, i * kStep));
    commit_products();
  }

  __device__ void release(Mbarrier& free) {
    if (lane_index() == 0) free.arrive();
  }

  __device__ void make_weights(int n, float (&correction)[2]) {
    const int key = (tiles_.first + n) * kTileKeys;
    if (bounds_.hides_some(key)) bounds_.hide(scores_, key);
    exponentiate(scores_, state_, correction, sizes_.scale_2());
    if (mask_.active()) tile_mask_.drop(scores_);
  }

  // As a left operand: parts of 16 keys.
  __device__ void round_weights() {
#pragma unroll
    for (int i = 0; i < kTileKeys / 4; ++i) weights_[i] = rounded_pair<T>(scores_[2 * i], scores_[2 * i + 1]);
  }

  // Zeros for values of padding, which may be anything, also what no zero makes zero. Both warpgroups come here.
  __device__ void clear_padding(int stage) {
    constexpr int kRowVectors = kColumns / 8;
    const int text = tiles_.text_keys - (tiles_.end - 1) * kTileKeys;
    auto* const rows = reinterpret_cast<Vector<T>*>(memory_.v[stage]);
    for (int i = static_cast<int>(threadIdx.x) - kWarpgroup; i < kTileKeys * kHeadSize / 8; i += kConsumers) {
      if (i / kRowVectors % kTileKeys >= text) rows[i] = {};
    }
    show_to_copies();
    wait_at_barrier<kConsumers>(kPaddingCleared);
  }

  Memory& memory_;
  const AttentionSizes& sizes_;
  const AttentionMask& mask_;
  const HeadMask head_mask_;
  const TileRange& tiles_;
  const int group_, query_;  // the warp's first query
  const RowBounds bounds_;
  RowState state_;
  TileMask tile_mask_;
  float scores_[kTileKeys / 2], out_[kHeadSize / 2];
  std::uint32_t weights_[kTileKeys / 4];
};

template <class T, int kHeadSize>
__device__ void make_mbarriers(HopperMemory<T, kHeadSize>& memory) {
  memory.q_given.make(1);
  for (int stage = 0; stage < kStages; ++stage) {
    memory.k_given[stage].make(1);
    memory.v_given[stage].make(1);
    memory.k_free[stage].make(kConsumerWarps);
    memory.v_free[stage].make(kConsumerWarps);
  }
  show_to_copies();
}

#endif

template <int kHeadSize>
constexpr std::size_t kHopperShared = (2 * kGroupQueries + 2 * kStages * kTileKeys) * kHeadSize * 2 +
                                      (1 + 4 * kStages) * sizeof(std::uint64_t) + kSharedAlignment;

template <class T, int kHeadSize>
__global__ void __launch_bounds__(kHopperThreads)
    attend_by_warpgroups([[maybe_unused]] const __grid_constant__ CUtensorMap q,
                         [[maybe_unused]] const __grid_constant__ CUtensorMap k,
                         [[maybe_unused]] const __grid_constant__ CUtensorMap v, [[maybe_unused]] ForwardViews<T> views,
                         [[maybe_unused]] AttentionSizes call, [[maybe_unused]] AttentionMask mask) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  auto& memory = hopper_memory<T, kHeadSize>();
  const HeadTile at(call.heads, (call.queries + kBlockQueries - 1) / kBlockQueries, true);
  const AttentionSizes sizes = call.without_padding(at.b);
  const int query = at.tile * kBlockQueries;
  clear_padded_queries(views, sizes, at, query, kBlockQueries);
  if (query >= sizes.queries) return;
  if (threadIdx.x == 0) make_mbarriers(memory);
  __syncthreads();
  // The block's last query sees as many keys as any, and its first one the first.
  const int end = query + kBlockQueries < sizes.queries ? query + kBlockQueries : sizes.queries;
  const int first = sizes.first_keys == nullptr ? 0 : sizes.first_keys[std::int64_t{at.b} * sizes.all_queries + query];
  const TileRange tiles{first / kTileKeys, (sizes.keys_seen(end - 1) + kTileKeys - 1) / kTileKeys, sizes.keys};
  // By way of an exchange, so that the compiler knows that a warp does not part here.
  const int warpgroup = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / kWarpgroup, 0);
  if (warpgroup == 0) {
    give_back_registers<kProducerRegisters>();
    if (threadIdx.x == 0) produce(memory, q, k, v, at, at.h / sizes.heads_per_key_head(), tiles);
  } else {
    take_registers<kConsumerRegisters>();
    Consumer<T, kHeadSize> consumer(memory, sizes, mask, at, tiles, warpgroup - 1);
    consumer.attend();
    consumer.store(views, at);
  }
#else
  __trap();
#endif
}

}  // namespace

void require_hopper(const cudaDeviceProp& device) {
  if (device.major == 9 && device.minor == 0) return;
  throw_environment_error("--hopper-attention needs a device of compute capability 9.0, and {} has {}.{}; leave it out",
                          device.name, device.major, device.minor);
}

void attend_hopper(cudaStream_t stream, const AttentionForward& args) {
  const AttentionSizes sizes = sizes_of(args);
  bool aligned = true;
  for (const TensorRef& view : {args.out, args.q, args.k, args.v}) aligned = aligned && has_aligned_rows<Bf16>(view);
  if (size_of(args.q.dtype) != 2 || sizes.head_size % 8 != 0 || sizes.head_size > kLargestMatrixHead || !aligned) {
    throw_user_error(
        "--hopper-attention computes attention in bf16 and fp16, of heads of up to {} that are multiples of 8 and "
        "start "
        "on 16 bytes, and these are of {} in {}; leave it out",
        kLargestMatrixHead, sizes.head_size, name_of(args.q.dtype));
  }
  with_half_type(args.q.dtype, [&]<class T>(ElementType<T>) {
    with_head_size(sizes.head_size, [&](auto size) {
      constexpr int kHeadSize = decltype(size)::value;
      const int tiles = (sizes.queries + kBlockQueries - 1) / kBlockQueries;
      launch(stream,
             {.grid = dim3(static_cast<unsigned>(sizes.batch * sizes.heads * tiles)),
              .block = dim3(kHopperThreads),
              .shared_bytes = kHopperShared<kHeadSize>},
             attend_by_warpgroups<T, kHeadSize>, tensor_map_of(args.q, kGroupQueries, kPanel<kHeadSize>),
             tensor_map_of(args.k, kTileKeys, kPanel<kHeadSize>), tensor_map_of(args.v, kTileKeys, kPanel<kHeadSize>),
             views_of<T>(args), sizes, mask_of(args));
    });
  });
}

}  // namespace teratron::cuda
