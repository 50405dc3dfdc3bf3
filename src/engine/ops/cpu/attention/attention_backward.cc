// Attention backward in tiles (FlashAttention, Dao et al., arXiv 2205.14135): probabilities are computed again from the
// log-sum-exp that forward kept. With D_i = sum over the head of dout_i * out_i, for a block of queries i and keys j:
//   P = exp(scale * q k^T - log_sum_exp),   dv_j += (M P)^T dout,   dS = P * (M (dout v^T) - D),
//   dq_i += scale * dS k,   dk_j += scale * dS^T q,   M the dropout factors.
// P in the code is how products are computed (simd/products-inl.h); where that is in bf16, M P and dS are rounded
// before they are multiplied. A head belongs to one thread, and its blocks come in a fixed order: so do the sums.
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE \
  "ops/cpu/attention/attention_backward.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <numbers>
#include <type_traits>

#include "base/block_size.h"
#include "base/host/threads.h"
#include "base/round_up.h"
#include "hwy/highway.h"
#include "ops/cpu/attention/attention.h"
#include "ops/cpu/attention/backward_work-inl.h"
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

// Packs rows [first, rows); `first` begins a block.
template <class P>
void pack_transposed(const HeadMatrix<typename P::Stored>& from, std::int64_t first, std::int64_t rows,
                     std::int64_t size, typename P::Word* panels) {
  for (std::int64_t j = first; j < rows; j += P::kColumns) {
    P::pack_transposed(from.row(j), from.stride, size, std::min(P::kColumns, rows - j), panels + j * P::words(size));
  }
}

template <class P>
void pack_blocks(const HeadMatrix<typename P::Stored>& from, std::int64_t first, std::int64_t rows, std::int64_t block,
                 const Work<P>& work, typename P::Word* panels) {
  for (std::int64_t i = first; i < rows; i += block) {
    const std::int64_t depth = std::min(block, rows - i);
    P::pack(from.row(i), from.stride, depth, work.size, panels + P::words(i) * work.padded_size);
  }
}

template <class P>
void pack_operands(const AttentionHead& head, const HeadMatrix<typename P::Stored>& dout, Work<P>& work) {
  using T = typename P::Stored;
  const auto q = head_of<T>(head.args.q, head.b, head.h), k = head_of<T>(head.args.k, head.b, head.key_head);
  const auto v = head_of<T>(head.args.v, head.b, head.key_head), out = head_of<T>(head.args.out, head.b, head.h);
  const std::int64_t converted = P::kConverts ? head.queries * work.size : 0;
  float* const rows = scratch_floats(Scratch::kRows, 2 * converted);
  work.q_rows = P::rows(q, head.queries, work.size, rows);
  work.dout_rows = P::rows(dout, head.queries, work.size, rows + converted);
  const std::int64_t first_key = head.first_key(0) / kKeyBlock<P> * kKeyBlock<P>;  // no query sees earlier blocks
  pack_transposed<P>(k, first_key, head.keys, work.size, work.keys_t);
  pack_transposed<P>(v, first_key, head.keys, work.size, work.values_t);
  pack_blocks<P>(k, first_key, head.keys, kKeyBlock<P>, work, work.keys);
  pack_blocks<P>(q, 0, head.queries, kQueryBlock<P>, work, work.queries);
  pack_blocks<P>(dout, 0, head.queries, kQueryBlock<P>, work, work.dout);
  for (std::int64_t i = 0; i < head.queries; ++i) {
    work.products[i] = sum_over(work.size, [&](std::int64_t d, auto access) HWY_ATTR {
      return hn::Mul(access.load(dout.row(i) + d), access.load(out.row(i) + d));
    });
  }
}

// scores = q k^T and gradients = dout v^T, but for register tiles that no query sees.
template <class P>
void multiply_scores(const Work<P>& work, const Tile& tile) {
  const std::int64_t words = P::words(work.size);
  for (std::int64_t j = tile.key_begin; j < tile.key_end; j += P::kColumns) {
    const std::int64_t hidden =
        std::max(std::int64_t{0}, work.head.first_query(j) - tile.query_begin) / P::kRows * P::kRows;
    const std::int64_t first = tile.query_begin + hidden;
    const std::int64_t rows = std::min(tile.query_end, work.head.end_query(j + P::kColumns - 1)) - first;
    const std::int64_t at = hidden * kKeyBlock<P> + j - tile.key_begin;
    P::multiply(rows, work.size, work.q_rows.row(first), work.q_rows.stride, work.keys_t + j * words,
                work.scores.sums + at, kKeyBlock<P>, false);
    P::multiply(rows, work.size, work.dout_rows.row(first), work.dout_rows.stride, work.values_t + j * words,
                work.gradients.sums + at, kKeyBlock<P>, false);
  }
}

// In place: scores become M P, and gradients become dS; zero for keys that a query does not see.
template <class P>
void differentiate_softmax(const Work<P>& work, const Tile& tile, DropoutMask& mask) {
  const FloatTag d;
  const AttentionHead& head = work.head;
  const FloatVector scale = constant(head.binary_scale());
  const bool drops = head.args.dropout.active();
  for (std::int64_t i = tile.query_begin; i < tile.query_end; ++i) {
    float* const p_row = work.scores.sums + (i - tile.query_begin) * kKeyBlock<P>;
    float* const gradient_row = work.gradients.sums + (i - tile.query_begin) * kKeyBlock<P>;
    std::int64_t from = std::max(std::int64_t{0}, head.first_key(i) - tile.key_begin);
    std::int64_t seen = std::clamp(head.keys_seen(i) - tile.key_begin, std::int64_t{0}, tile.keys());
    if (from >= seen) from = seen = 0;
    const std::int64_t aligned = from / kFloatLanes * kFloatLanes;
    // The binary logarithm in two floats, or it would be rounded a second time.
    const double shift = head.log_sum_exp[i] * std::numbers::log2e;
    const auto rounded_shift = static_cast<float>(shift);
    const FloatVector high = constant(rounded_shift), low = constant(static_cast<float>(shift - rounded_shift));
    const FloatVector product = constant(work.products[i]);
    if (drops) mask.generate(head.element(i, tile.key_begin), seen);
    for (std::int64_t c = 0; c < aligned; c += kFloatLanes) {
      hn::Store(hn::Zero(d), d, p_row + c);
      hn::Store(hn::Zero(d), d, gradient_row + c);
    }
    for (std::int64_t c = aligned; c < seen; c += kFloatLanes) {
      FloatVector p = exp2(hn::Sub(hn::MulSub(hn::Load(d, p_row + c), scale, high), low));
      if (seen - c < kFloatLanes) p = hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(seen - c)), p);
      FloatVector dropped = p, gradient = hn::Load(d, gradient_row + c);
      if (c < from) {
        const auto is_hidden = hn::FirstN(d, static_cast<std::size_t>(from - c));
        p = dropped = hn::IfThenZeroElse(is_hidden, p);
        gradient = hn::IfThenZeroElse(is_hidden, gradient);
      }
      if (drops) {
        dropped = mask.apply(p, c);
        gradient = mask.apply(gradient, c);
      }
      hn::Store(dropped, d, p_row + c);
      hn::Store(hn::Mul(p, hn::Sub(gradient, product)), d, gradient_row + c);
    }
    for (std::int64_t c = std::max(aligned, round_up(seen, kFloatLanes)); c < kKeyBlock<P>; c += kFloatLanes) {
      hn::Store(hn::Zero(d), d, p_row + c);
      hn::Store(hn::Zero(d), d, gradient_row + c);
    }
  }
}

// Rounds a tile's coefficients to bf16, as rows and as columns.
void round_coefficients(const Coefficients<Bf16Products>& of, const Tile& tile) {
  constexpr std::int64_t kStride = kKeyBlock<Bf16Products>;
  for (std::int64_t i = 0; i < tile.queries(); ++i)
    round_to_bf16(of.sums + i * kStride, kStride, of.rows + i * kStride);
  pack_bf16_tiles(of.rows, kStride, tile.keys(), tile.queries(), of.columns);
}

// to[keys, columns] (+)= (rows [begin, end) of keys [key, key + rows) of the coefficients)^T panel.
template <class P>
void multiply_columns(const Coefficients<P>& coefficients, const Tile& tile, std::int64_t key, std::int64_t rows,
                      std::int64_t begin, std::int64_t end, const typename P::Word* panel, float* to,
                      std::int64_t to_stride, bool accumulate) {
  if constexpr (P::kRounds) {
    const std::int64_t words = bf16_pairs(tile.queries());
    multiply_bf16_tiles(rows, kBf16PanelColumns, end - begin,
                        coefficients.columns + key * words + bf16_pairs(begin) * kBf16TileRows,
                        panel + bf16_pairs(begin) * kBf16PanelColumns, to, to_stride, accumulate);
  } else {
    multiply_panel<true>(rows, kPanelColumns, end - begin, coefficients.columns + begin * kKeyBlock<P> + key,
                         kKeyBlock<P>, panel + begin * kPanelColumns, to, to_stride, accumulate);
  }
}

// dk += dS^T q and dv += (M P)^T dout: each tile of keys from the first query that sees one of them to the last one.
// Words are read whole: where that adds a query, its coefficients are zero.
template <class P>
void add_key_gradients(const Work<P>& work, const Tile& tile, bool accumulate) {
  for (std::int64_t j = tile.key_begin; j < tile.key_end; j += P::kRows) {
    const std::int64_t rows = std::min<std::int64_t>(P::kRows, tile.key_end - j), key = j - tile.key_begin;
    const std::int64_t skipped = std::max(std::int64_t{0}, work.head.first_query(j) - tile.query_begin);
    const std::int64_t end = std::min(tile.query_end, work.head.end_query(j + rows - 1)) - tile.query_begin;
    if (end <= skipped && accumulate) continue;
    const std::int64_t begin = end <= skipped ? 0 : skipped / P::kDepths * P::kDepths;
    const std::int64_t to_end = end <= skipped ? 0 : end;
    for (std::int64_t d = 0; d < work.padded_size; d += P::kColumns) {
      const std::int64_t to = key * work.padded_size + d;
      multiply_columns(work.gradients, tile, key, rows, begin, to_end,
                       work.panel(work.queries, tile.query_begin, tile.queries(), d), work.dk + to, work.padded_size,
                       accumulate);
      multiply_columns(work.scores, tile, key, rows, begin, to_end,
                       work.panel(work.dout, tile.query_begin, tile.queries(), d), work.dv + to, work.padded_size,
                       accumulate);
    }
  }
}

// dq (+)= dS k: each tile of queries from where its first one sees as far as its last one.
template <class P>
void add_query_gradients(const Work<P>& work, const Tile& tile) {
  for (std::int64_t d = 0; d < work.padded_size; d += P::kColumns) {
    const typename P::Word* const panel = work.panel(work.keys, tile.key_begin, tile.keys(), d);
    for (std::int64_t i = tile.query_begin; i < tile.query_end; i += P::kRows) {
      const std::int64_t end = std::min(tile.query_end, i + P::kRows);
      const std::int64_t first_key = work.head.first_key(i);
      const std::int64_t from = std::max(std::int64_t{0}, first_key - tile.key_begin) / P::kDepths * P::kDepths;
      const std::int64_t seen = std::min(work.head.keys_seen(end - 1) - tile.key_begin, tile.keys()) - from;
      if (seen <= 0) continue;
      // The block of keys that has its first one overwrites dq, and later blocks add to it.
      P::multiply(end - i, seen, work.gradients.rows + (i - tile.query_begin) * kKeyBlock<P> + from, kKeyBlock<P>,
                  panel + P::words(from) * P::kColumns, work.dq + i * work.padded_size + d, work.padded_size,
                  tile.key_begin > first_key);
    }
  }
}

// to (+)= factor * from, row by row.
template <class T>
void write_rows(const HeadMatrix<T>& to, const float* from, std::int64_t from_stride, std::int64_t rows,
                std::int64_t size, float factor, bool accumulate) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for_each_vector(size, [&](std::int64_t d, auto access) HWY_ATTR {
      const FloatVector value = hn::Mul(constant(factor), access.load(from + i * from_stride + d));
      access.store(accumulate ? hn::Add(access.load(to.row(i) + d), value) : value, to.row(i) + d);
    });
  }
}

// Sums of the gradients of a key head's keys and values, to which its query heads add one after another. They are dk
// and dv themselves or, where several heads would each round dk and dv to 16 bits, fp32 rows in scratch memory.
template <class KeyGradient>
struct KeySums {
  HeadMatrix<KeyGradient> dk, dv;
  HeadMatrix<float> shared_dk = {}, shared_dv = {};  // null: the sums are dk and dv

  bool is_shared() const { return shared_dk.data != nullptr; }
};

// Adds one query head's gradients of the key block to the sums. `is_first`: no head has added to them before.
template <class KeyGradient, class P>
void write_key_gradients(const AttentionBackward& args, const Work<P>& work, const KeySums<KeyGradient>& sums,
                         std::int64_t key, std::int64_t key_end, bool is_first) {
  const auto scale = static_cast<float>(args.forward.scale);
  const auto write = [&](const auto& dk, const auto& dv, bool accumulate) {
    write_rows<std::remove_reference_t<decltype(*dk.data)>>({dk.row(key), dk.stride}, work.dk, work.padded_size,
                                                            key_end - key, work.size, scale, accumulate);
    write_rows<std::remove_reference_t<decltype(*dv.data)>>({dv.row(key), dv.stride}, work.dv, work.padded_size,
                                                            key_end - key, work.size, 1, accumulate);
  };
  sums.is_shared() ? write(sums.shared_dk, sums.shared_dv, !is_first)
                   : write(sums.dk, sums.dv, args.accumulate_kv || !is_first);
}

// Clears the sums of keys [begin, end), which no query sees.
template <class KeyGradient>
void clear_key_gradients(const AttentionBackward& args, const KeySums<KeyGradient>& sums, std::int64_t begin,
                         std::int64_t end) {
  const std::int64_t size = args.dq.dim(3);
  for (const auto& rows : {sums.shared_dk, sums.shared_dv}) {
    if (sums.is_shared()) clear_rows(rows, begin, end, size);
  }
  if (args.accumulate_kv || sums.is_shared()) return;
  for (const auto& rows : {sums.dk, sums.dv}) clear_rows(rows, begin, end, size);
}

// Computes dq of one query head, and adds its part to the sums of its key head.
template <class P, class KeyGradient>
void differentiate_head(const AttentionBackward& args, const AttentionHead& head, const KeySums<KeyGradient>& sums,
                        bool is_first) {
  using T = typename P::Stored;
  Work<P> work = make_work<P>(head);
  pack_operands(head, head_of<T>(args.dout, head.b, head.h), work);
  DropoutMask mask(args.forward.dropout);
  for (std::int64_t key = 0; key < head.keys; key += kKeyBlock<P>) {
    const std::int64_t key_end = std::min(head.keys, key + kKeyBlock<P>);
    const std::int64_t end_query = head.end_query(key_end - 1);
    const std::int64_t first_block = head.first_query(key) / kQueryBlock<P> * kQueryBlock<P>;
    if (first_block >= end_query) {
      if (is_first) clear_key_gradients(args, sums, key, key_end);
      continue;
    }
    for (std::int64_t query = first_block; query < end_query; query += kQueryBlock<P>) {
      const Tile tile{query, std::min(head.queries, query + kQueryBlock<P>), key, key_end};
      multiply_scores(work, tile);
      differentiate_softmax(work, tile, mask);
      if constexpr (P::kRounds) {
        round_coefficients(work.scores, tile);
        round_coefficients(work.gradients, tile);
      }
      add_key_gradients(work, tile, query > first_block);
      add_query_gradients(work, tile);
    }
    write_key_gradients(args, work, sums, key, key_end, is_first);
  }
  write_rows(head_of<T>(args.dq, head.b, head.h), work.dq, work.padded_size, head.queries, work.size,
             static_cast<float>(args.forward.scale), false);
}

// Computes dk and dv of key head `key_head` of sequence b, and dq of the query heads that read it.
template <class P, class KeyGradient>
void differentiate_key_head(const AttentionBackward& args, std::int64_t b, std::int64_t key_head) {
  using T = typename P::Stored;
  const std::int64_t members = args.forward.heads_per_key_head(), first = key_head * members, size = args.dq.dim(3);
  const AttentionHead first_head{.args = args.forward, .b = b, .h = first};
  KeySums<KeyGradient> sums{head_of<KeyGradient>(args.dk, b, key_head), head_of<KeyGradient>(args.dv, b, key_head)};
  clear_key_gradients(args, sums, first_head.keys, args.dk.dim(1));
  const bool is_shared = members > 1 && !std::is_same_v<KeyGradient, float>;
  if (is_shared && first_head.keys > 0) {
    float* const rows = scratch_floats(Scratch::kKeySums, 2 * first_head.keys * size);
    sums.shared_dk = {rows, size};
    sums.shared_dv = {rows + first_head.keys * size, size};
  }
  for (std::int64_t h = first; h < first + members; ++h) {
    const AttentionHead head{.args = args.forward, .b = b, .h = h};
    clear_rows(head_of<T>(args.dq, b, h), head.queries, args.dq.dim(1), size);
    if (head.queries > 0) differentiate_head<P>(args, head, sums, h == first);
  }
  if (!sums.is_shared()) return;
  write_rows<KeyGradient>(sums.dk, sums.shared_dk.data, size, first_head.keys, size, 1, args.accumulate_kv);
  write_rows<KeyGradient>(sums.dv, sums.shared_dv.data, size, first_head.keys, size, 1, args.accumulate_kv);
}

using ScratchOf = ScratchSizes (*)(const WorkShapes::Attention&);

ScratchOf backward_scratch_of(DType dtype, bool bf16_products) {
  return choose_products(dtype, bf16_products, []<class P>(P) -> ScratchOf { return &backward_scratch<P>; });
}

using DifferentiateKeyHead = void (*)(const AttentionBackward&, std::int64_t, std::int64_t);

DifferentiateKeyHead backward_kernel(const AttentionBackward& args, bool bf16_products) {
  const bool sums_stay = args.dk.dtype == DType::kF32;
  return choose_products(args.dq.dtype, bf16_products, [&]<class P>(P) -> DifferentiateKeyHead {
    return sums_stay ? &differentiate_key_head<P, float> : &differentiate_key_head<P, typename P::Stored>;
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(backward_kernel);
HWY_EXPORT(backward_scratch_of);

}  // namespace

void include_attention_backward(const WorkShapes::Attention& head, DType dtype, bool bf16_products,
                                ScratchSizes& sizes) {
  sizes.include(HWY_DYNAMIC_DISPATCH(backward_scratch_of)(dtype, bf16_products)(head));
}

void CpuBackend::do_attention_backward(const AttentionBackward& args) {
  const std::int64_t key_heads = args.forward.key_heads();
  const auto kernel = HWY_DYNAMIC_DISPATCH(backward_kernel)(args, bf16_products_);
  parallel_for(args.forward.q.dim(0) * key_heads, 1,
               [&](std::int64_t task, std::int64_t) { kernel(args, task / key_heads, task % key_heads); });
}

}  // namespace teratron
#endif  // HWY_ONCE
