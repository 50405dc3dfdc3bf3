// Attention forward in tiles that never hold a whole row of scores (FlashAttention, Dao et al., arXiv 2205.14135): for
// each block of queries, tiles of keys update a running maximum, a running sum and an unnormalised output. The head's
// keys and values are packed once into panels for the kernel of linear layers. P below is how products are computed
// (simd/products-inl.h); where that is in bf16, probabilities are rounded before they multiply v.
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE \
  "ops/cpu/attention/attention_forward.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "base/block_size.h"
#include "base/host/threads.h"
#include "base/round_up.h"
#include "hwy/highway.h"
#include "ops/cpu/attention/attention.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd/dropout-inl.h"
#include "ops/cpu/simd/gemm_kernel-inl.h"
#include "ops/cpu/simd/math-inl.h"
#include "ops/cpu/simd/products-inl.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

// Multiples of a tile's rows and of a panel's columns on every target, so that scores need no edge cases.
template <class P>
constexpr std::int64_t kQueryBlock = block_size(48, P::kRows);
template <class P>
constexpr std::int64_t kKeyBlock = block_size(192, P::kColumns);

// A query's maximum is raised where scores exceed it by more, in binary logarithms. Powers up to 2^8 round as those up
// to 1 do, and sums and outputs are seldom scaled again.
constexpr float kHeadroom = 8;

// Upper bound of a thread's scratch memory for queries that see so many keys.
template <class P>
ScratchSizes forward_scratch(const WorkShapes::Attention& of) {
  const std::int64_t padded_size = round_up(of.head_size, P::kColumns), scores = kQueryBlock<P> * kKeyBlock<P>;
  ScratchSizes sizes;
  sizes.include(Scratch::kKeys, round_up(of.keys, P::kColumns) * P::words(of.head_size));
  sizes.include(Scratch::kValues, P::words(of.keys) * padded_size);
  // One by one, a query's scores are a row.
  sizes.include(Scratch::kTileA, std::max(P::kRounds ? 2 * scores : scores, round_up(of.keys, kFloatLanes)));
  sizes.include(Scratch::kTileB, kQueryBlock<P> * padded_size);
  if (P::kConverts) sizes.include(Scratch::kQueries, std::min(of.queries, kQueryBlock<P>) * of.head_size);
  return sizes;
}

// The panels of one head. k^T[D, keys]: panel after panel of keys. v[keys, D]: for each block of keys, panel after
// panel of D.
template <class P>
struct PackedHead {
  const typename P::Word *keys, *values;
};

// Keys [first_key, key_count) are packed; first_key is that of a block.
template <class P>
PackedHead<P> pack_head(const AttentionHead& head, std::int64_t first_key, std::int64_t key_count) {
  using Word = typename P::Word;
  using T = typename P::Stored;
  static_assert(kQueryBlock<P> % P::kRows == 0 && kKeyBlock<P> % P::kColumns == 0);
  const std::int64_t size = head.head_size, padded_size = round_up(size, P::kColumns), words = P::words(size);
  const auto k = head_of<T>(head.args.k, head.b, head.key_head), v = head_of<T>(head.args.v, head.b, head.key_head);
  Word* const keys = scratch_words<Word>(Scratch::kKeys, round_up(key_count, P::kColumns) * words);
  Word* const values = scratch_words<Word>(Scratch::kValues, P::words(key_count) * padded_size);
  for (std::int64_t j = first_key; j < key_count; j += P::kColumns) {
    P::pack_transposed(k.row(j), k.stride, size, std::min(P::kColumns, key_count - j), keys + j * words);
  }
  for (std::int64_t j = first_key; j < key_count; j += kKeyBlock<P>) {
    const std::int64_t depth = std::min(kKeyBlock<P>, key_count - j);
    P::pack(v.row(j), v.stride, depth, size, values + P::words(j) * padded_size);
  }
  return {keys, values};
}

// A block of queries on its way through the keys.
template <class P>
struct QueryBlock {
  using Factor = typename P::Factor;
  std::int64_t begin, end;
  std::int64_t first_key;  // of the first block of keys that one of the queries sees
  HeadMatrix<const Factor> queries;
  float* scores;              // [kQueryBlock, kKeyBlock]
  Factor* probabilities;      // as they multiply v: the memory of the scores, or bf16 beside it
  float* out;                 // [kQueryBlock, padded head size], unnormalised
  float max[kQueryBlock<P>];  // of the scores so far, as binary logarithms, or at most kHeadroom less
  HWY_ALIGN float sums[kQueryBlock<P> * kFloatLanes];  // of 2^(score - max) so far, a part in each lane
};

void scale_row(float* row, std::int64_t count, float factor) {
  for_each_vector(count, [&](std::int64_t d, auto access)
                             HWY_ATTR { access.store(hn::Mul(access.load(row + d), constant(factor)), row + d); });
}

// scores = q k^T for the keys from first_key on, but for tiles that no query sees.
template <class P>
void score_block(const AttentionHead& head, const PackedHead<P>& packed, const QueryBlock<P>& block,
                 std::int64_t first_key, std::int64_t end_key) {
  for (std::int64_t j = first_key; j < end_key; j += P::kColumns) {
    const std::int64_t hidden = std::max(std::int64_t{0}, head.first_query(j) - block.begin) / P::kRows * P::kRows;
    const std::int64_t end = std::min(block.end, head.end_query(j + P::kColumns - 1));
    const std::int64_t rows = end - block.begin - hidden;
    P::multiply(rows, head.head_size, block.queries.row(hidden), block.queries.stride,
                packed.keys + j * P::words(head.head_size), block.scores + hidden * kKeyBlock<P> + j - first_key,
                kKeyBlock<P>, false);
  }
}

// The part of a row of scores that its query sees, from the vector on that has the first of them.
struct SeenScores {
  std::int64_t from, to;  // in the block of keys
  bool any() const { return from < to; }
  std::int64_t begin() const { return from / kFloatLanes * kFloatLanes; }
  std::int64_t count() const { return to - begin(); }
};

// Raises the maximum of query i of the block where its scores exceed it by far, and scales its sum and output.
template <class P>
void raise_maximum(QueryBlock<P>& block, std::int64_t i, const SeenScores& seen, float scale, std::int64_t padded_size,
                   bool has_output) {
  float* const row = block.scores + i * kKeyBlock<P> + seen.begin();
  // Scores before the first that is seen become so low that their powers add nothing to the sum.
  std::fill(row, row + seen.from - seen.begin(), std::numeric_limits<float>::lowest());
  const float max = scale * max_of(row, seen.count());
  if (!(max > block.max[i] + kHeadroom)) return;
  const float correction = std::exp2(block.max[i] - max);
  block.max[i] = max;
  scale_row(block.sums + i * kFloatLanes, kFloatLanes, correction);
  if (has_output) scale_row(block.out + i * padded_size, padded_size, correction);
}

// Turns scores of query i of the block into powers of two up to its maximum, adds up these, and applies dropout.
template <class P>
void exponentiate_scores(const AttentionHead& head, QueryBlock<P>& block, std::int64_t i, const SeenScores& seen,
                         float scale, std::int64_t first_key, DropoutMask& mask) {
  const FloatTag d;
  float* const row = block.scores + i * kKeyBlock<P> + seen.begin();
  float* const sums = block.sums + i * kFloatLanes;
  const FloatVector sum = exponentiate_row(row, seen.count(), scale, block.max[i]);
  hn::Store(hn::Add(hn::Load(d, sums), sum), d, sums);
  if (!head.args.dropout.active()) return;
  mask.apply_to(row, head.element(block.begin + i, first_key + seen.begin()), seen.count());
}

// Index from which probabilities are read so that those from key `from` of a block on are: words are read whole.
template <class P>
constexpr std::int64_t word_begin(std::int64_t from) {
  return from / P::kDepths * P::kDepths;
}

// Brings maxima, sums and outputs of the block's queries up to date with their scores, and turns these into
// probabilities up to the maximum. Keys that a query does not see, but another query of its register tile does, become
// zero. Maxima come first, since each waits for its vectors' lanes: those of several rows are found at once.
template <class P>
void softmax_block(const AttentionHead& head, QueryBlock<P>& block, std::int64_t first_key, std::int64_t end_key,
                   DropoutMask& mask) {
  const std::int64_t count = block.end - block.begin, padded_size = round_up(head.head_size, P::kColumns);
  const float scale = head.binary_scale();
  const auto in_block = [&](std::int64_t key) { return std::clamp(key, first_key, end_key) - first_key; };
  SeenScores seen[kQueryBlock<P>];
  for (std::int64_t i = 0; i < count; ++i) {
    seen[i] = {in_block(head.first_key(block.begin + i)), in_block(head.keys_seen(block.begin + i))};
    if (seen[i].any()) raise_maximum(block, i, seen[i], scale, padded_size, first_key > block.first_key);
  }
  for (std::int64_t tile = 0; tile < count; tile += P::kRows) {
    const std::int64_t tile_end = std::min(count, tile + P::kRows);
    const std::int64_t read_from = word_begin<P>(seen[tile].from), read_to = seen[tile_end - 1].to;
    for (std::int64_t i = tile; i < tile_end; ++i) {
      if (seen[i].any()) exponentiate_scores(head, block, i, seen[i], scale, first_key, mask);
      float* const row = block.scores + i * kKeyBlock<P>;
      std::fill(row + read_from, row + seen[i].from, 0.0F);
      std::fill(row + std::max(seen[i].from, seen[i].to), row + read_to, 0.0F);
      if constexpr (P::kRounds) {
        if (read_from < read_to) {
          round_to_bf16(row + read_from, read_to - read_from, block.probabilities + i * kKeyBlock<P> + read_from);
        }
      }
    }
  }
}

// out (+)= probabilities v, row tile by row tile, each from where its first query sees as far as its last one.
template <class P>
void mix_values(const AttentionHead& head, const PackedHead<P>& packed, const QueryBlock<P>& block,
                std::int64_t first_key, std::int64_t end_key) {
  const std::int64_t padded_size = round_up(head.head_size, P::kColumns), depth = end_key - first_key;
  for (std::int64_t d = 0; d < padded_size; d += P::kColumns) {
    const typename P::Word* const panel = packed.values + P::words(first_key) * padded_size + d * P::words(depth);
    for (std::int64_t i = block.begin; i < block.end; i += P::kRows) {
      const std::int64_t end = std::min(block.end, i + P::kRows);
      const std::int64_t from = word_begin<P>(std::clamp(head.first_key(i), first_key, end_key) - first_key);
      const std::int64_t seen = std::min(head.keys_seen(end - 1), end_key) - first_key - from;
      const bool accumulate = first_key > block.first_key;
      if (seen <= 0 && accumulate) continue;
      P::multiply(end - i, std::max(std::int64_t{0}, seen),
                  block.probabilities + (i - block.begin) * kKeyBlock<P> + from, kKeyBlock<P>,
                  panel + P::words(from) * P::kColumns, block.out + (i - block.begin) * padded_size + d, padded_size,
                  accumulate);
    }
  }
}

// Natural logarithm of 2^max sum.
float log_sum_exp(float max, float sum) { return static_cast<float>(max * std::numbers::ln2 + std::log(sum)); }

template <class P>
void finish_block(const AttentionHead& head, const QueryBlock<P>& block) {
  using T = typename P::Stored;
  const std::int64_t size = head.head_size, padded_size = round_up(size, P::kColumns);
  const auto out = head_of<T>(head.args.out, head.b, head.h);
  for (std::int64_t i = 0; i < block.end - block.begin; ++i) {
    T* const to = out.row(block.begin + i);
    const float* const from = block.out + i * padded_size;
    const float sum = sum_of_lanes(hn::Load(FloatTag(), block.sums + i * kFloatLanes));
    const FloatVector factor = constant(1 / sum);
    for_each_vector(size, [&](std::int64_t d, auto access)
                              HWY_ATTR { access.store(hn::Mul(access.load(from + d), factor), to + d); });
    head.log_sum_exp[block.begin + i] = log_sum_exp(block.max[i], sum);
  }
}

// Too few queries to pay for packing: one pass over the keys and one over the values each, as fast as they can be read.
template <class T>
void attend_one_by_one(const AttentionHead& head) {
  const auto q = head_of<T>(head.args.q, head.b, head.h), k = head_of<T>(head.args.k, head.b, head.key_head);
  const auto v = head_of<T>(head.args.v, head.b, head.key_head), out = head_of<T>(head.args.out, head.b, head.h);
  const float scale = head.binary_scale();
  float* const row = scratch_floats(Scratch::kTileA, round_up(head.keys, kFloatLanes));
  float* const mixed = scratch_floats(Scratch::kTileB, head.head_size);
  DropoutMask mask(head.args.dropout);
  for (std::int64_t i = 0; i < head.queries; ++i) {
    const std::int64_t first = head.first_key(i), seen = head.keys_seen(i) - first;
    for (std::int64_t j = 0; j < seen; ++j) {
      row[j] = sum_over(head.head_size, [&](std::int64_t d, auto access) HWY_ATTR {
        return hn::Mul(access.load(q.row(i) + d), access.load(k.row(first + j) + d));
      });
    }
    std::fill(row + seen, row + round_up(seen, kFloatLanes), 0.0F);
    const float max = scale * max_of(row, seen), sum = sum_of_lanes(exponentiate_row(row, seen, scale, max));
    if (head.args.dropout.active()) mask.apply_to(row, head.element(i, first), seen);
    std::fill_n(mixed, head.head_size, 0.0F);
    for (std::int64_t j = 0; j < seen; ++j) {
      const FloatVector weight = constant(row[j] / sum);
      for_each_vector(head.head_size, [&](std::int64_t d, auto access) HWY_ATTR {
        access.store(hn::MulAdd(weight, access.load(v.row(first + j) + d), access.load(mixed + d)), mixed + d);
      });
    }
    for_each_vector(head.head_size, [&](std::int64_t d, auto access)
                                        HWY_ATTR { access.store(access.load(mixed + d), out.row(i) + d); });
    head.log_sum_exp[i] = log_sum_exp(max, sum);
  }
}

// Takes this thread's memory for a block of queries.
template <class P>
QueryBlock<P> make_block(std::int64_t head_size) {
  QueryBlock<P> block{};
  constexpr std::int64_t kScores = kQueryBlock<P> * kKeyBlock<P>;
  block.scores = scratch_floats(Scratch::kTileA, P::kRounds ? 2 * kScores : kScores);
  if constexpr (P::kRounds) {
    block.probabilities = reinterpret_cast<typename P::Factor*>(block.scores + kScores);
  } else {
    block.probabilities = block.scores;
  }
  block.out = scratch_floats(Scratch::kTileB, kQueryBlock<P> * round_up(head_size, P::kColumns));
  return block;
}

// Queries [begin, end) of a head.
template <class P>
void attend(const AttentionHead& head, std::int64_t begin, std::int64_t end) {
  using T = typename P::Stored;
  const auto block_of = [](std::int64_t key) { return key / kKeyBlock<P> * kKeyBlock<P>; };
  const PackedHead<P> packed = pack_head<P>(head, block_of(head.first_key(begin)), head.keys_seen(end - 1));
  DropoutMask mask(head.args.dropout);
  QueryBlock<P> block = make_block<P>(head.head_size);
  const auto q = head_of<T>(head.args.q, head.b, head.h);
  for (block.begin = begin; block.begin < end; block.begin += kQueryBlock<P>) {
    block.end = std::min(end, block.begin + kQueryBlock<P>);
    const std::int64_t count = block.end - block.begin;
    float* const converted = P::kConverts ? scratch_floats(Scratch::kQueries, count * head.head_size) : nullptr;
    block.queries = P::rows({q.row(block.begin), q.stride}, count, head.head_size, converted);
    std::fill_n(block.max, kQueryBlock<P>, -std::numeric_limits<float>::infinity());
    std::fill_n(block.sums, kQueryBlock<P> * kFloatLanes, 0.0F);
    const std::int64_t keys = head.keys_seen(block.end - 1);
    block.first_key = block_of(head.first_key(block.begin));
    for (std::int64_t first_key = block.first_key; first_key < keys; first_key += kKeyBlock<P>) {
      // Panels of v are laid out for all packed keys of their block, seen from here or not.
      const std::int64_t end_key = std::min(head.keys_seen(end - 1), first_key + kKeyBlock<P>);
      score_block(head, packed, block, first_key, std::min(end_key, keys));
      softmax_block(head, block, first_key, end_key, mask);
      mix_values(head, packed, block, first_key, end_key);
    }
    finish_block(head, block);
  }
}

template <class T>
void clear_queries(const AttentionHead& head, std::int64_t begin, std::int64_t end) {
  clear_rows(head_of<T>(head.args.out, head.b, head.h), begin, end, head.head_size);
  std::fill(head.log_sum_exp + begin, head.log_sum_exp + end, 0.0F);
}

AttentionKernels forward_kernels(DType dtype, bool bf16_products) {
  return choose_products(dtype, bf16_products, []<class P>(P) {
    using T = typename P::Stored;
    return AttentionKernels{&attend<P>, &attend_one_by_one<T>, &clear_queries<T>, &forward_scratch<P>};
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(forward_kernels);

// Whole heads where there are enough of them, since each task packs the keys and values it needs.
constexpr std::int64_t kTasksPerThread = 4, kQueryGrain = block_size(48, 2);
constexpr std::int64_t kFewQueries = block_size(4, 1);

// Queries [begin, end) of a head, of which the last ones may be padding.
void attend_part(const AttentionKernels& kernels, const AttentionHead& head, std::int64_t begin, std::int64_t end) {
  const std::int64_t text_end = std::clamp(head.queries, begin, end);
  if (text_end < end) kernels.clear(head, text_end, end);
  if (text_end == begin) return;
  // So few queries are one part, so begin is 0.
  head.queries <= kFewQueries ? kernels.attend_one_by_one(head) : kernels.attend(head, begin, text_end);
}

}  // namespace

void include_attention_forward(const WorkShapes::Attention& head, DType dtype, bool bf16_products,
                               ScratchSizes& sizes) {
  sizes.include(HWY_DYNAMIC_DISPATCH(forward_kernels)(dtype, bf16_products).scratch(head));
}

void CpuBackend::do_attention_forward(const AttentionForward& args) {
  const std::int64_t queries = args.q.dim(1), heads = args.q.dim(2), all_heads = args.q.dim(0) * heads;
  const AttentionKernels kernels = HWY_DYNAMIC_DISPATCH(forward_kernels)(args.q.dtype, bf16_products_);
  const std::int64_t wanted = std::max(std::int64_t{1}, kTasksPerThread * thread_count() / all_heads);
  const std::int64_t blocks = (queries + kQueryGrain - 1) / kQueryGrain;
  const std::int64_t part = (blocks + wanted - 1) / wanted * kQueryGrain, parts = (queries + part - 1) / part;
  parallel_for(all_heads * parts, 1, [&](std::int64_t task, std::int64_t) {
    const AttentionHead head{.args = args, .b = task / parts / heads, .h = task / parts % heads};
    const std::int64_t begin = task % parts * part;
    attend_part(kernels, head, begin, std::min(queries, begin + part));
  });
}

void CpuBackend::do_cached_attention(const CachedAttention& args) {
  const std::int64_t batch = args.q.dim(0), tokens = args.q.dim(1), heads = args.q.dim(2);
  const AttentionKernels kernels = HWY_DYNAMIC_DISPATCH(forward_kernels)(args.q.dtype, bf16_products_);
  const Tensor log_sum_exp(*this, accumulation_dtype(), {batch, heads, tokens});
  std::vector<AttentionForward> sequences;  // a call each, of as many keys as its cache then holds
  std::vector<std::int32_t> first_keys(static_cast<std::size_t>(args.window == 0 ? 0 : batch * tokens));
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t begin = args.lengths.as<const std::int32_t>()[b], end = begin + tokens;
    check(begin >= 0 && end <= args.keys.dim(1), "the cache has room for the tokens");
    const auto own = [&](const TensorRef& view) { return view.slice(0, b, b + 1); };
    sequences.push_back({.out = own(args.out),
                         .log_sum_exp = own(log_sum_exp.ref()),
                         .q = own(args.q),
                         .k = own(args.keys).slice(1, 0, end),
                         .v = own(args.values).slice(1, 0, end),
                         .scale = args.scale});
    if (args.window > 0) {
      std::int32_t* const own_first = first_keys.data() + b * tokens;
      for (std::int64_t t = 0; t < tokens; ++t) {
        own_first[t] = static_cast<std::int32_t>(std::max(begin + t + 1 - args.window, std::int64_t{0}));
      }
      sequences.back().first_keys = {own_first, DType::kI32, {1, tokens}};
    }
    do_copy(sequences.back().k.slice(1, begin, end), own(args.k));
    do_copy(sequences.back().v.slice(1, begin, end), own(args.v));
  }
  parallel_for(batch * heads, 1, [&](std::int64_t task, std::int64_t) {
    const AttentionHead head{.args = sequences[static_cast<std::size_t>(task / heads)], .b = 0, .h = task % heads};
    attend_part(kernels, head, 0, tokens);
  });
}

}  // namespace teratron
#endif  // HWY_ONCE
