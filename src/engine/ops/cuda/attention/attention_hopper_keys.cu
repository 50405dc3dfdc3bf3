// Gradients of keys and values on Hopper. A block owns 128 keys of a key head, a warpgroup 64, and walks the queries
// that see them, one of the query heads that share the keys after another. Scores are computed as k q^T, so that a
// warpgroup has p^T and ds^T in registers as left operands:
//   dv += (m p)^T dout,   dk += scale ds^T q,   ds = p (m dout v^T - D).
// A tile's scores are computed while the gradients of the tile before are added, and its mask is drawn meanwhile.
#include "ops/cuda/attention/attention_hopper.h"
#include "ops/cuda/attention/hopper_softmax.h"
#include "ops/cuda/attention/hopper_tiles.h"

namespace teratron::cuda {
namespace {

constexpr int kTileQueries = 64;
constexpr int kStages = 4;  // tiles of queries in shared memory

struct TileStatistics {
  float log2_sums[kTileQueries], products[kTileQueries];
  int first_keys[kTileQueries];  // where documents share a sequence
};

template <int kHeadSize>
constexpr std::size_t kKeyBytes =
    (2 * kBlockRows + 2 * kStages * kTileQueries) * kHeadSize * 2 + kStages * sizeof(TileStatistics) +
    (1 + 2 * kStages) * sizeof(std::uint64_t);

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr int kScores = kTileQueries / 2;  // of a lane

// Whether gradients of values are added before there are those of scores: larger heads leave no registers for both.
template <int kHeadSize>
constexpr bool kStartsEarly = kHeadSize <= 96;

template <class T, int kHeadSize>
struct KeyMemory {
  // By panels of columns.
  T k[2][kGroupRows * kHeadSize], v[2][kGroupRows * kHeadSize];
  T q[kStages][kTileQueries * kHeadSize];
  T dout[kStages][kTileQueries * kHeadSize];
  TileStatistics statistics[kStages];
  Mbarrier keys_given, given[kStages], free[kStages];
};

template <class T, int kHeadSize>
__device__ void make_mbarriers(KeyMemory<T, kHeadSize>& memory) {
  memory.keys_given.make(1);
  for (int stage = 0; stage < kStages; ++stage) {
    memory.given[stage].make(1);
    memory.free[stage].make(kConsumerWarps);
  }
  show_to_copies();
}

// A block's work: keys of a head from `key` on, and the tiles of queries that see some of them. first_keys is of the
// sequence.
struct KeyBlock {
  int b, head, key;  // of the keys
  int members;       // query heads that read them
  TileRange tiles;
  const int* first_keys;

  __device__ KeyBlock(const AttentionSizes& sizes, const HeadTile& at)
      : b(at.b),
        head(at.h),
        key(at.tile * kBlockRows),
        members(sizes.heads_per_key_head()),
        tiles{sizes.first_query(key) / kTileQueries, (sizes.queries + kTileQueries - 1) / kTileQueries},
        first_keys(sizes.first_keys == nullptr ? nullptr : sizes.first_keys + std::int64_t{b} * sizes.all_queries) {
    if (first_keys != nullptr) tiles.end = end_of_documents();
  }

  __device__ int first_head() const { return head * members; }

 private:
  // The first tile whose queries' documents begin after the keys, and so do those of all later ones.
  __device__ int end_of_documents() const {
    int low = tiles.first, high = tiles.end;
    while (low < high) {
      const int middle = (low + high) / 2;
      first_keys[middle * kTileQueries] < key + kBlockRows ? low = middle + 1 : high = middle;
    }
    return low;
  }
};

// A lane's part of a tile's statistics, on its way to shared memory. Zeros are beyond the last query: with zeros for q
// and dout they add nothing.
class StatisticsCopy {
 public:
  __device__ StatisticsCopy(const KeyBlock& block, const QueryStatistics* of_head, int query, int queries) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int row = query + place(i);
      const bool given = row < queries;
      of_query_[i] = given ? of_head[row] : QueryStatistics{0, 0};
      first_keys_[i] = given && block.first_keys != nullptr ? block.first_keys[row] : 0;
    }
  }

  __device__ void store(TileStatistics& to) const {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      to.log2_sums[place(i)] = of_query_[i].log2_sum;
      to.products[place(i)] = of_query_[i].product;
      to.first_keys[place(i)] = first_keys_[i];
    }
  }

 private:
  static constexpr int kEach = kTileQueries / kWarp;
  static __device__ int place(int i) { return lane_index() + i * kWarp; }

  QueryStatistics of_query_[kEach];
  int first_keys_[kEach];
};

// The warp that copies.
template <class T, int kHeadSize>
__device__ void produce(KeyMemory<T, kHeadSize>& memory, const BackwardMaps& maps, const KeyBlock& block,
                        const QueryStatistics* statistics, const AttentionSizes& sizes) {
  const bool leads = lane_index() == 0;
  if (leads) {
    memory.keys_given.arrive_and_expect(sizeof(memory.k) + sizeof(memory.v));
    start_block_rows<kHeadSize>(memory.k, maps.k, memory.keys_given, block.b, block.head, block.key);
    start_block_rows<kHeadSize>(memory.v, maps.v, memory.keys_given, block.b, block.head, block.key);
  }
  int n = 0;
#pragma unroll 1
  for (int h = block.first_head(); h < block.first_head() + block.members; ++h) {
    const QueryStatistics* const of_head = statistics + sizes.first_row(block.b, h);
#pragma unroll 1
    for (int tile = block.tiles.first; tile < block.tiles.end; ++tile, ++n) {
      const int stage = n % kStages, query = tile * kTileQueries;
      const StatisticsCopy copy(block, of_head, query, sizes.queries);
      memory.free[stage].wait_for(n / kStages - 1);
      copy.store(memory.statistics[stage]);
      __syncwarp();  // the leader's arrival shows what all have stored
      if (!leads) continue;
      memory.given[stage].arrive_and_expect(sizeof(memory.q[stage]) + sizeof(memory.dout[stage]));
      start_panels<kTileQueries, kHeadSize>(memory.q[stage], maps.q, memory.given[stage], block.b, h, query);
      start_panels<kTileQueries, kHeadSize>(memory.dout[stage], maps.dout, memory.given[stage], block.b, h, query);
    }
  }
}

// A warpgroup's 64 keys. Value 4 n + i of a tile's scores is in a lane's columns 8 n, as part_row(i) and
// part_column(i) say.
template <class T, int kHeadSize>
class KeyConsumer {
  using Memory = KeyMemory<T, kHeadSize>;

 public:
  __device__ KeyConsumer(Memory& memory, const AttentionSizes& sizes, const AttentionMask& mask, const KeyBlock& block,
                         int group)
      : memory_(memory),
        sizes_(sizes),
        mask_(mask),
        block_(block),
        group_(group),
        key_(first_row_of_warp(block.key)),
        first_of_group_(sizes.first_query(block.key + group * kGroupRows)),
        last_first_(sizes.first_query(key_ + 15)) {}

  __device__ void add_up() {
#pragma unroll
    for (int i = 0; i < kHeadSize / 2; ++i) dk_[i] = dv_[i] = 0;
    hold(dk_);
    hold(dv_);
    memory_.keys_given.wait_for(0);
    int n = 0;
#pragma unroll 1
    for (int h = block_.first_head(); h < block_.first_head() + block_.members; ++h) {
      head_mask_ = mask_.of_head(block_.b, h);
#pragma unroll 1
      for (int tile = block_.tiles.first; tile < block_.tiles.end; ++tile, ++n) add_tile(n, tile);
    }
    wait_for_products<0>();
    hold(dk_);
    hold(dv_);
  }

  __device__ void store(const BackwardViews<T>& views) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = key_ + part_row(2 * half);
      if (row >= sizes_.keys) continue;
#pragma unroll
      for (int n = 0; n < kHeadSize / 8; ++n) {
        if (8 * n >= sizes_.head_size) continue;
        const int column = 8 * n + part_column(0), i = 4 * n + 2 * half;
        store_gradient_pair(views.dk, block_.b, block_.head, row, column, dk_[i] * sizes_.scale,
                            dk_[i + 1] * sizes_.scale);
        store_gradient_pair(views.dv, block_.b, block_.head, row, column, dv_[i] * mask_.scale(),
                            dv_[i + 1] * mask_.scale());
      }
    }
  }

 private:
  // Tile `tile` of a head, which is the block's tile n.
  __device__ void add_tile(int n, int tile) {
    const int stage = n % kStages, query = tile * kTileQueries;
    memory_.given[stage].wait_for(n / kStages);
    if (sizes_.lengths != nullptr && tile == block_.tiles.end - 1) clear_last_tile(stage, sizes_.queries - query);
    if (query + kTileQueries <= first_of_group_) return release(memory_.free[stage]);
    start_scores<kHeadSize>(scores_, memory_.k[group_], memory_.q[stage]);
    if (mask_.active()) key_mask_.draw(mask_, head_mask_, query, key_);
    wait_for_products<1>();
    hold_gradients();
    if (added_stage_ >= 0) release(memory_.free[added_stage_]);
    added_stage_ = stage;
    start_scores<kHeadSize>(gradients_, memory_.v[group_], memory_.dout[stage]);
    wait_for_products<1>();
    hold(scores_);
    exponentiate(memory_.statistics[stage], query);
    if constexpr (kStartsEarly<kHeadSize>) {
      start_values(stage);
      wait_for_products<1>();
    } else {
      wait_for_products<0>();
    }
    hold(gradients_);
    mask_.active() ? differentiate<true>(memory_.statistics[stage]) : differentiate<false>(memory_.statistics[stage]);
    if constexpr (!kStartsEarly<kHeadSize>) start_values(stage);
    round_weights<T>(score_gradients_, gradients_);
    start_weighted_sums<T>(dk_, score_gradients_, memory_.q[stage]);
  }

  __device__ void start_values(int stage) {
    mask_.active() ? round_kept<true>() : round_kept<false>();
    start_weighted_sums<T>(dv_, weights_, memory_.dout[stage]);
  }

  __device__ void hold_gradients() {
    hold(dk_);
    hold(dv_);
    hold(weights_);
    hold(score_gradients_);
  }

  // Scores become probabilities.
  __device__ void exponentiate(const TileStatistics& statistics, int query) {
    const float scale = sizes_.scale_2();
#pragma unroll
    for (int n = 0; n < kTileQueries / 8; ++n) {
      const auto log2_sums = pair_at(statistics.log2_sums, n);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& score = scores_[4 * n + i];
        score = fast_exp2(score * scale - (i % 2 == 0 ? log2_sums.low : log2_sums.high));
      }
    }
    if (query < last_first_) {
      const int ahead = key_ - sizes_.context() - query;
      hide([&](int i, int column) { return ahead + part_row(i) > column; });
    }
    if (block_.first_keys != nullptr) {
      hide([&](int i, int column) { return key_ + part_row(i) < statistics.first_keys[column]; });
    }
  }

  // Zeros for the probabilities of queries that hides(value of a part, column) says do not see the key.
  template <class Hides>
  __device__ void hide(const Hides& hides) {
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      if (hides(i % 4, i / 4 * 8 + part_column(i))) scores_[i] = 0;
    }
  }

  template <bool kDrops>
  __device__ void round_kept() {
#pragma unroll
    for (int n = 0; n < kTileQueries / 8; ++n) {
      float kept[4];
      KeyMask::Kept drawn = {};
      if constexpr (kDrops) drawn = key_mask_.kept(n);
#pragma unroll
      for (int i = 0; i < 4; ++i) kept[i] = !kDrops || drawn.at(n, i) ? scores_[4 * n + i] : 0.0F;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        weights_[2 * n + half] = rounded_pair<T>(kept[2 * half], kept[2 * half + 1]);
      }
    }
  }

  // Gradients of probabilities with dropout become ds.
  template <bool kDrops>
  __device__ void differentiate(const TileStatistics& statistics) {
    const float dropout_scale = mask_.scale();
#pragma unroll
    for (int n = 0; n < kTileQueries / 8; ++n) {
      const auto products = pair_at(statistics.products, n);
      KeyMask::Kept drawn = {};
      if constexpr (kDrops) drawn = key_mask_.kept(n);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& gradient = gradients_[4 * n + i];
        if (kDrops && !drawn.at(n, i)) gradient = 0;
        gradient = scores_[4 * n + i] * (gradient * dropout_scale - (i % 2 == 0 ? products.low : products.high));
      }
    }
  }

  // A pair for a lane's columns 8 n.
  static __device__ FloatPair pair_at(const float* of_queries, int n) {
    return *reinterpret_cast<const FloatPair*>(of_queries + 8 * n + part_column(0));
  }

  __device__ void clear_last_tile(int stage, int text) {
    clear_padding<kTileQueries, kHeadSize>(memory_.q[stage], text);
    clear_padding<kTileQueries, kHeadSize>(memory_.dout[stage], text);
    make_padding_known();
  }

  Memory& memory_;
  const AttentionSizes& sizes_;
  const AttentionMask& mask_;
  const KeyBlock& block_;
  const int group_, key_;     // the warp's first key
  const int first_of_group_;  // the first query that sees one of the warpgroup's keys
  const int last_first_;      // the first query that sees all the warp's keys
  int added_stage_ = -1;      // of the tile whose gradients are added; -1: there is none
  HeadMask head_mask_;
  KeyMask key_mask_;
  float scores_[kScores], gradients_[kScores], dk_[kHeadSize / 2], dv_[kHeadSize / 2];
  std::uint32_t weights_[kScores / 2], score_gradients_[kScores / 2];
};

#endif

template <class T, int kHeadSize>
__global__ void __launch_bounds__(kHopperThreads, 1)
    add_key_gradients_by_warpgroups([[maybe_unused]] const __grid_constant__ BackwardMaps maps,
                                    [[maybe_unused]] BackwardViews<T> views, [[maybe_unused]] AttentionSizes call,
                                    [[maybe_unused]] AttentionMask mask) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Memory = KeyMemory<T, kHeadSize>;
  static_assert(sizeof(Memory) == kKeyBytes<kHeadSize>);
  auto& memory = hopper_memory<Memory>();
  const HeadTile at(call.key_heads, (call.keys + kBlockRows - 1) / kBlockRows, false);
  const AttentionSizes sizes = call.without_padding(at.b);
  clear_padded_keys(views, sizes, at, at.tile * kBlockRows, kBlockRows);
  if (at.tile * kBlockRows >= sizes.differentiated_keys()) return;
  if (threadIdx.x == 0) make_mbarriers(memory);
  __syncthreads();
  const KeyBlock block(sizes, at);
  const int warpgroup = warpgroup_index();
  if (warpgroup == 0) {
    give_back_registers<kProducerRegisters>();
    if (warp_index() == 0) produce(memory, maps, block, views.statistics, sizes);
  } else {
    take_registers<kConsumerRegisters>();
    KeyConsumer<T, kHeadSize> consumer(memory, sizes, mask, block, warpgroup - 1);
    consumer.add_up();
    consumer.store(views);
  }
#else
  __trap();
#endif
}

}  // namespace

void add_key_gradients_hopper(cudaStream_t stream, const AttentionBackward& args, const QueryStatistics* statistics) {
  const AttentionSizes sizes = sizes_of(args.forward);
  with_half_type(args.dq.dtype, [&]<class T>(ElementType<T>) {
    with_head_size(sizes.head_size, [&](auto size) {
      constexpr int kHeadSize = decltype(size)::value;
      launch(stream, hopper_shape(sizes.batch, sizes.key_heads, sizes.keys, kKeyBytes<kHeadSize>),
             add_key_gradients_by_warpgroups<T, kHeadSize>,
             backward_maps_of(args, kPanel<kHeadSize>, {.queries = kTileQueries, .keys = kGroupRows}),
             views_of<T>(args, statistics), sizes, mask_of(args.forward));
    });
  });
}

}  // namespace teratron::cuda
