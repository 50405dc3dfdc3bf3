// Memory of a thread in attention's backward pass: a head's operands in panels, tiles of scores, and sums of gradients.
// Compiled once per target, so the include guard toggles.
#if defined(TERATRON_OPS_CPU_BACKWARD_WORK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TERATRON_OPS_CPU_BACKWARD_WORK_INL_H_
#undef TERATRON_OPS_CPU_BACKWARD_WORK_INL_H_
#else
#define TERATRON_OPS_CPU_BACKWARD_WORK_INL_H_
#endif

#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/block_size.h"
#include "base/round_up.h"
#include "hwy/highway.h"
#include "ops/cpu/attention/attention.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd/dropout-inl.h"
#include "ops/cpu/simd/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

// Multiples of a tile's rows and of a panel's columns on every target, so that scores need no edge cases.
template <class P>
constexpr std::int64_t kQueryBlock = block_size(48, P::kRows);
template <class P>
constexpr std::int64_t kKeyBlock = block_size(96, P::kColumns);

// M P or dS of a tile [kQueryBlock, kKeyBlock]: `sums` as computed in fp32, `rows` and `columns` as products read them.
// Where products are in bf16, `rows` are rounded, and `columns` are the transposed matrix in the tiles of
// pack_bf16_tiles(); else both are `sums`.
template <class P>
struct Coefficients {
  float* sums;
  typename P::Factor* rows;
  typename P::Word* columns;
};

// One head's operands in panels, and the gradients it sums up.
template <class P>
struct Work {
  using Word = typename P::Word;
  using Factor = typename P::Factor;
  const AttentionHead& head;
  std::int64_t size, padded_size;     // D, and rounded up to whole panels
  Word *keys_t, *values_t;            // k^T and v^T [D, keys]: panel after panel of keys
  Word *keys, *queries, *dout;        // [rows, D]: for each block of rows, panel after panel of D
  Coefficients<P> scores, gradients;  // q k^T, then M P; dout v^T, then dS
  HeadMatrix<const Factor> q_rows, dout_rows;
  float *dq, *dk, *dv;  // [queries, padded_size]; [kKeyBlock, padded_size]
  float* products;      // [queries]: D_i, the sum of dout_i * out_i over the head

  // The panel of columns d, d + 1, .. of the block of `depth` rows that starts at row `begin`.
  const Word* panel(const Word* blocks, std::int64_t begin, std::int64_t depth, std::int64_t d) const {
    return blocks + P::words(begin) * padded_size + d * P::words(depth);
  }
};

// A block of queries and a block of keys.
struct Tile {
  std::int64_t query_begin, query_end, key_begin, key_end;
  std::int64_t queries() const { return query_end - query_begin; }
  std::int64_t keys() const { return key_end - key_begin; }
};

// Hands out the parts of one block of this thread's memory, one after the other.
class Parts {
 public:
  Parts(const ScratchSizes& sizes, Scratch use) : next_(scratch_floats(use, sizes[use])) {}
  template <class Word>
  Word* take(std::int64_t floats) {
    return reinterpret_cast<Word*>(std::exchange(next_, next_ + floats));
  }

 private:
  float* next_;
};

template <class P>
Coefficients<P> take_coefficients(Parts& parts) {
  constexpr std::int64_t kCount = kQueryBlock<P> * kKeyBlock<P>;
  static_assert(kQueryBlock<P> % P::kRows == 0 && kKeyBlock<P> % P::kRows == 0 && kKeyBlock<P> % P::kColumns == 0);
  static_assert(kQueryBlock<P> % P::kDepths == 0 && kKeyBlock<P> % P::kDepths == 0);
  static_assert(kKeyBlock<P> <= DropoutMask::kRun);
  float* const sums = parts.take<float>(kCount);
  if constexpr (P::kRounds) {
    return {sums, parts.take<typename P::Factor>(kCount / 2), parts.take<typename P::Word>(kCount / 2)};
  } else {
    return {sums, sums, sums};
  }
}

// Upper bound of the scratch memory of a head of at most so many queries and keys.
template <class P>
ScratchSizes backward_scratch(const WorkShapes::Attention& of) {
  const std::int64_t size = of.head_size, padded_size = round_up(size, P::kColumns);
  const std::int64_t keys = round_up(of.keys, P::kColumns), queries = round_up(of.queries, P::kColumns);
  ScratchSizes sizes;
  sizes.include(Scratch::kKeys, 2 * keys * P::words(size) + P::words(keys) * padded_size);
  sizes.include(Scratch::kQueries, 2 * P::words(queries) * padded_size + queries * (padded_size + 1));
  sizes.include(Scratch::kTileA, 2 * kKeyBlock<P> * (2 * kQueryBlock<P> + padded_size));
  if (P::kConverts) sizes.include(Scratch::kRows, 2 * of.queries * size);
  const bool sums_keys = of.heads_per_key_head > 1 && !std::is_same_v<typename P::Stored, float>;
  if (sums_keys) sizes.include(Scratch::kKeySums, 2 * of.keys * size);
  return sizes;
}

template <class P>
Work<P> make_work(const AttentionHead& head) {
  using Word = typename P::Word;
  const std::int64_t size = head.head_size, padded_size = round_up(size, P::kColumns);
  const std::int64_t keys = round_up(head.keys, P::kColumns), queries = round_up(head.queries, P::kColumns);
  const ScratchSizes sizes = backward_scratch<P>({.queries = head.queries, .keys = head.keys, .head_size = size});
  Parts packed_keys(sizes, Scratch::kKeys), packed_queries(sizes, Scratch::kQueries), tiles(sizes, Scratch::kTileA);
  return {.head = head,
          .size = size,
          .padded_size = padded_size,
          .keys_t = packed_keys.take<Word>(keys * P::words(size)),
          .values_t = packed_keys.take<Word>(keys * P::words(size)),
          .keys = packed_keys.take<Word>(P::words(keys) * padded_size),
          .queries = packed_queries.take<Word>(P::words(queries) * padded_size),
          .dout = packed_queries.take<Word>(P::words(queries) * padded_size),
          .scores = take_coefficients<P>(tiles),
          .gradients = take_coefficients<P>(tiles),
          .q_rows = {},
          .dout_rows = {},
          .dq = packed_queries.take<float>(queries * padded_size),
          .dk = tiles.take<float>(kKeyBlock<P> * padded_size),
          .dv = tiles.take<float>(kKeyBlock<P> * padded_size),
          .products = packed_queries.take<float>(queries)};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
