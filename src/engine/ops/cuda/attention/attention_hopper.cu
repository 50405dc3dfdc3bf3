// Attention forward as FlashAttention-3 computes it (Shah et al., arXiv 2407.08608) on Hopper: a warp copies tiles of
// keys and values by tensor maps, and two warpgroups of 64 queries each multiply them. A warpgroup's softmax overlaps
// the other's products, which take turns, and its own: scores of a tile are computed while values of the tile before
// are added. The mask is that of all our kernels: the positions of keys and queries, documents, and dropout by
// position.
#include "ops/cuda/attention/attention_hopper.h"

#include "base/error.h"
#include "ops/cuda/attention/hopper_softmax.h"
#include "ops/cuda/attention/hopper_tiles.h"

namespace teratron::cuda {
namespace {

constexpr int kStages = 2;  // tiles of keys, and of values, in shared memory

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <class T, int kHeadSize>
struct HopperMemory {
  // By panels of columns.
  T q[2][kGroupRows * kHeadSize];
  T k[kStages][kTileKeys * kHeadSize];
  T v[kStages][kTileKeys * kHeadSize];
  Mbarrier q_given, k_given[kStages], v_given[kStages], k_free[kStages], v_free[kStages];
};

// The one thread that copies.
template <class T, int kHeadSize>
__device__ void produce(HopperMemory<T, kHeadSize>& memory, const CUtensorMap& q, const CUtensorMap& k,
                        const CUtensorMap& v, const HeadTile& at, int key_head, const TileRange& tiles) {
  memory.q_given.arrive_and_expect(sizeof(memory.q));
  start_block_rows<kHeadSize>(memory.q, q, memory.q_given, at.b, at.h, at.tile * kBlockRows);
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

 public:
  __device__ Consumer(Memory& memory, const AttentionSizes& sizes, const AttentionMask& mask, const HeadTile& at,
                      const TileRange& tiles, int group)
      : memory_(memory),
        sizes_(sizes),
        mask_(mask),
        head_mask_(mask.of_head(at.b, at.h)),
        tiles_(tiles),
        group_(group),
        query_(first_row_of_warp(at.tile * kBlockRows)),
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
    round_weights<T>(weights_, scores_);
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
    round_weights<T>(weights_, scores_);
  }

  __device__ void add_last_values(int n) {
    const int stage = n % kStages;
    memory_.v_given[stage].wait_for(n / kStages);
    if (sizes_.lengths != nullptr) {
      clear_padding<kTileKeys, kHeadSize>(memory_.v[stage], sizes_.keys - (tiles_.end - 1) * kTileKeys);
      make_padding_known();
    }
    start_values(stage);
    wait_for_products<0>();
    hold(out_);
  }

  __device__ void start_scores(int stage) {
    cuda::start_scores<kHeadSize>(scores_, memory_.q[group_], memory_.k[stage]);
  }

  __device__ void start_values(int stage) { start_weighted_sums(out_, weights_, memory_.v[stage]); }

  __device__ void make_weights(int n, float (&correction)[2]) {
    const int key = (tiles_.first + n) * kTileKeys;
    if (bounds_.hides_some(key)) bounds_.hide(scores_, key);
    exponentiate(scores_, state_, correction, sizes_.scale_2());
    if (mask_.active()) tile_mask_.drop(scores_);
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
constexpr std::size_t kHopperBytes = (kBlockRows + 2 * kStages * kTileKeys) * kHeadSize * 2 +
                                     (1 + 4 * kStages) * sizeof(std::uint64_t);

template <class T, int kHeadSize>
__global__ void __launch_bounds__(kHopperThreads, 1)
    attend_by_warpgroups([[maybe_unused]] const __grid_constant__ CUtensorMap q,
                         [[maybe_unused]] const __grid_constant__ CUtensorMap k,
                         [[maybe_unused]] const __grid_constant__ CUtensorMap v, [[maybe_unused]] ForwardViews<T> views,
                         [[maybe_unused]] AttentionSizes call, [[maybe_unused]] AttentionMask mask) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Memory = HopperMemory<T, kHeadSize>;
  static_assert(sizeof(Memory) == kHopperBytes<kHeadSize>);
  auto& memory = hopper_memory<Memory>();
  const HeadTile at(call.heads, (call.queries + kBlockRows - 1) / kBlockRows, true);
  const AttentionSizes sizes = call.without_padding(at.b);
  const int query = at.tile * kBlockRows;
  clear_padded_queries(views, sizes, at, query, kBlockRows);
  if (query >= sizes.queries) return;
  if (threadIdx.x == 0) make_mbarriers(memory);
  __syncthreads();
  const TileRange tiles = key_tiles_of(sizes, at.b, query);
  const int warpgroup = warpgroup_index();
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

[[noreturn]] void refuse(const AttentionForward& args) {
  throw_user_error(
      "--hopper-attention computes attention in bf16 and fp16, of heads of up to {} that are multiples of 8 and start "
      "on 16 bytes, and these are of {} in {}; use auto",
      kLargestMatrixHead, args.q.dim(3), name_of(args.q.dtype));
}

}  // namespace

bool is_hopper(const cudaDeviceProp& device) { return device.major == 9 && device.minor == 0; }

void require_hopper(const cudaDeviceProp& device) {
  if (is_hopper(device)) return;
  throw_environment_error("--hopper-attention on needs a device of compute capability 9.0, and {} has {}.{}; use auto",
                          device.name, device.major, device.minor);
}

void attend_hopper(cudaStream_t stream, const AttentionForward& args) {
  if (!fits_matrices(args)) refuse(args);
  const AttentionSizes sizes = sizes_of(args);
  with_half_type(args.q.dtype, [&]<class T>(ElementType<T>) {
    with_head_size(sizes.head_size, [&](auto size) {
      constexpr int kHeadSize = decltype(size)::value;
      launch(stream, hopper_shape(sizes.batch, sizes.heads, sizes.queries, kHopperBytes<kHeadSize>),
             attend_by_warpgroups<T, kHeadSize>, tensor_map_of(args.q, kGroupRows, kPanel<kHeadSize>),
             tensor_map_of(args.k, kTileKeys, kPanel<kHeadSize>), tensor_map_of(args.v, kTileKeys, kPanel<kHeadSize>),
             views_of<T>(args), sizes, mask_of(args));
    });
  });
}

void differentiate_attention_hopper(cudaStream_t stream, const AttentionBackward& args,
                                    const QueryStatistics* statistics) {
  if (!fits_matrices(args)) refuse(args.forward);
  add_key_gradients_hopper(stream, args, statistics);
  add_query_gradients_hopper(stream, args, statistics);
}

}  // namespace teratron::cuda
