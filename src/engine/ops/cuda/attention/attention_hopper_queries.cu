// Gradients of queries on Hopper. A block owns 128 queries, a warpgroup 64, and walks the keys that they see:
//   dq += scale ds k,   ds = p (m dout v^T - D).
// A tile's scores are computed while the gradients of the tile before are added, and its mask is drawn meanwhile.
#include "ops/cuda/attention/attention_hopper.h"
#include "ops/cuda/attention/hopper_softmax.h"
#include "ops/cuda/attention/hopper_tiles.h"

namespace teratron::cuda {
namespace {

constexpr int kStages = 2;  // tiles of keys and values in shared memory

template <int kHeadSize>
constexpr std::size_t kQueryBytes = (2 * kBlockRows + 2 * kStages * kTileKeys) * kHeadSize * 2 +
                                    (1 + 2 * kStages) * sizeof(std::uint64_t);

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr int kScores = kTileKeys / 2;  // of a lane

template <class T, int kHeadSize>
struct QueryMemory {
  // By panels of columns.
  T q[2][kGroupRows * kHeadSize], dout[2][kGroupRows * kHeadSize];
  T k[kStages][kTileKeys * kHeadSize];
  T v[kStages][kTileKeys * kHeadSize];
  Mbarrier queries_given, given[kStages], free[kStages];
};

template <class T, int kHeadSize>
__device__ void make_mbarriers(QueryMemory<T, kHeadSize>& memory) {
  memory.queries_given.make(1);
  for (int stage = 0; stage < kStages; ++stage) {
    memory.given[stage].make(1);
    memory.free[stage].make(kConsumerWarps);
  }
  show_to_copies();
}

// The one thread that copies.
template <class T, int kHeadSize>
__device__ void produce(QueryMemory<T, kHeadSize>& memory, const BackwardMaps& maps, const HeadTile& at, int key_head,
                        const TileRange& tiles) {
  memory.queries_given.arrive_and_expect(sizeof(memory.q) + sizeof(memory.dout));
  start_block_rows<kHeadSize>(memory.q, maps.q, memory.queries_given, at.b, at.h, at.tile * kBlockRows);
  start_block_rows<kHeadSize>(memory.dout, maps.dout, memory.queries_given, at.b, at.h, at.tile * kBlockRows);
#pragma unroll 1
  for (int n = 0; n < tiles.count(); ++n) {
    const int stage = n % kStages, key = (tiles.first + n) * kTileKeys;
    memory.free[stage].wait_for(n / kStages - 1);
    memory.given[stage].arrive_and_expect(sizeof(memory.k[stage]) + sizeof(memory.v[stage]));
    start_panels<kTileKeys, kHeadSize>(memory.k[stage], maps.k, memory.given[stage], at.b, key_head, key);
    start_panels<kTileKeys, kHeadSize>(memory.v[stage], maps.v, memory.given[stage], at.b, key_head, key);
  }
}

// A warpgroup's 64 queries.
template <class T, int kHeadSize>
class QueryConsumer {
  using Memory = QueryMemory<T, kHeadSize>;

 public:
  __device__ QueryConsumer(Memory& memory, const AttentionSizes& sizes, const AttentionMask& mask, const HeadTile& at,
                           const TileRange& tiles, const QueryStatistics* statistics, int group)
      : memory_(memory),
        sizes_(sizes),
        mask_(mask),
        head_mask_(mask.of_head(at.b, at.h)),
        tiles_(tiles),
        group_(group),
        query_(first_row_of_warp(at.tile * kBlockRows)),
        bounds_(sizes, at.b, query_),
        statistics_(statistics + sizes.first_row(at.b, at.h), query_, sizes.queries) {}

  __device__ void add_up() {
#pragma unroll
    for (float& sum : dq_) sum = 0;
    hold(dq_);
    memory_.queries_given.wait_for(0);
#pragma unroll 1
    for (int n = 0; n < tiles_.count(); ++n) add_tile(n);
    wait_for_products<0>();
    hold(dq_);
  }

  __device__ void store(const BackwardViews<T>& views, const HeadTile& at) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = query_ + part_row(2 * half);
      if (row >= sizes_.queries) continue;
      T* const to = views.dq.head(at.b, at.h)(row) + part_column(0);
#pragma unroll
      for (int n = 0; n < kHeadSize / 8; ++n) {
        const float* const pair = dq_ + 4 * n + 2 * half;
        if (8 * n < sizes_.head_size) store_pair(to + 8 * n, pair[0] * sizes_.scale, pair[1] * sizes_.scale);
      }
    }
  }

 private:
  __device__ void add_tile(int n) {
    const int stage = n % kStages, key = (tiles_.first + n) * kTileKeys;
    memory_.given[stage].wait_for(n / kStages);
    if (sizes_.lengths != nullptr && n == tiles_.count() - 1) clear_last_tile(stage, sizes_.keys - key);
    start_scores<kHeadSize>(scores_, memory_.q[group_], memory_.k[stage]);
    if (mask_.active()) tile_mask_.draw(mask_, head_mask_, query_, key);
    wait_for_products<1>();
    hold(dq_);
    hold(score_gradients_);
    if (n > 0) release(memory_.free[(n - 1) % kStages]);
    start_scores<kHeadSize>(gradients_, memory_.dout[group_], memory_.v[stage]);
    wait_for_products<1>();
    hold(scores_);
    exponentiate(key);
    wait_for_products<0>();
    hold(gradients_);
    if (mask_.active()) tile_mask_.drop(gradients_);
    differentiate();
    round_weights<T>(score_gradients_, gradients_);
    start_weighted_sums<T>(dq_, score_gradients_, memory_.k[stage]);
  }

  // Scores become probabilities.
  __device__ void exponentiate(int key) {
    if (bounds_.hides_some(key)) bounds_.hide(scores_, key);
    const float scale = sizes_.scale_2();
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      scores_[i] = fast_exp2(scores_[i] * scale - statistics_.of_row[i % 4 / 2].log2_sum);
    }
  }

  // Gradients of probabilities become ds.
  __device__ void differentiate() {
    const float dropout_scale = mask_.scale();
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      gradients_[i] = scores_[i] * (gradients_[i] * dropout_scale - statistics_.of_row[i % 4 / 2].product);
    }
  }

  __device__ void clear_last_tile(int stage, int text) {
    clear_padding<kTileKeys, kHeadSize>(memory_.k[stage], text);
    clear_padding<kTileKeys, kHeadSize>(memory_.v[stage], text);
    make_padding_known();
  }

  Memory& memory_;
  const AttentionSizes& sizes_;
  const AttentionMask& mask_;
  const HeadMask head_mask_;
  const TileRange& tiles_;
  const int group_, query_;  // the warp's first query
  const RowBounds bounds_;
  const RowStatistics statistics_;
  TileMask tile_mask_;
  float scores_[kScores], gradients_[kScores], dq_[kHeadSize / 2];
  std::uint32_t score_gradients_[kScores / 2];
};

#endif

template <class T, int kHeadSize>
__global__ void __launch_bounds__(kHopperThreads, 1)
    add_query_gradients_by_warpgroups([[maybe_unused]] const __grid_constant__ BackwardMaps maps,
                                      [[maybe_unused]] BackwardViews<T> views, [[maybe_unused]] AttentionSizes call,
                                      [[maybe_unused]] AttentionMask mask) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Memory = QueryMemory<T, kHeadSize>;
  static_assert(sizeof(Memory) == kQueryBytes<kHeadSize>);
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
    if (threadIdx.x == 0) produce(memory, maps, at, at.h / sizes.heads_per_key_head(), tiles);
  } else {
    take_registers<kConsumerRegisters>();
    QueryConsumer<T, kHeadSize> consumer(memory, sizes, mask, at, tiles, views.statistics, warpgroup - 1);
    consumer.add_up();
    consumer.store(views, at);
  }
#else
  __trap();
#endif
}

}  // namespace

void add_query_gradients_hopper(cudaStream_t stream, const AttentionBackward& args, const QueryStatistics* statistics) {
  const AttentionSizes sizes = sizes_of(args.forward);
  with_half_type(args.dq.dtype, [&]<class T>(ElementType<T>) {
    with_head_size(sizes.head_size, [&](auto size) {
      constexpr int kHeadSize = decltype(size)::value;
      launch(stream, hopper_shape(sizes.batch, sizes.heads, sizes.queries, kQueryBytes<kHeadSize>),
             add_query_gradients_by_warpgroups<T, kHeadSize>,
             backward_maps_of(args, kPanel<kHeadSize>, {.queries = kGroupRows, .keys = kTileKeys}),
             views_of<T>(args, statistics), sizes, mask_of(args.forward));
    });
  });
}

}  // namespace teratron::cuda
