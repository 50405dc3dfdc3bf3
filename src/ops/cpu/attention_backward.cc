// Attention backward in tiles (FlashAttention, Dao et al., arXiv 2205.14135): probabilities are computed again from the
// log-sum-exp that forward kept. With D_i = sum over the head of dout_i * out_i, for a block of queries i and keys j:
//   P = exp(scale * q k^T - log_sum_exp),   dv_j += (M P)^T dout,   dS = P * (M (dout v^T) - D),
//   dq_i += scale * dS k,   dk_j += scale * dS^T q,   M the dropout factors.
// A head belongs to one thread, and its blocks come in a fixed order: so do the sums.
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/attention_backward.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <type_traits>

#include "base/block_size.h"
#include "base/round_up.h"
#include "base/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd/dropout-inl.h"
#include "ops/cpu/simd/gemm_kernel-inl.h"
#include "ops/cpu/simd/math-inl.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

// Multiples of a tile's rows and of a panel's columns on every target, so that scores need no edge cases.
constexpr std::int64_t kQueryBlock = block_size(48, kTileRows), kKeyBlock = block_size(96, kPanelColumns);
static_assert(kQueryBlock % kTileRows == 0 && kKeyBlock % kTileRows == 0 && kKeyBlock % kPanelColumns == 0);
static_assert(kKeyBlock <= DropoutMask::kRun);

// One head's operands in panels, and the gradients it sums up.
struct Work {
  const AttentionHead& head;
  std::int64_t size, padded_size;  // D, and rounded up to whole panels
  float *keys_t, *values_t;        // k^T and v^T [D, keys]: panel after panel of keys
  float *keys, *queries, *dout;    // [rows, D]: for each block of rows, panel after panel of D
  float *scores, *gradients;       // [kQueryBlock, kKeyBlock]: q k^T, then M P; dout v^T, then dS
  HeadMatrix<const float> q_rows, dout_rows;
  float *dq, *dk, *dv;  // [queries, padded_size]; [kKeyBlock, padded_size]
  float* products;      // D_i, [queries]

  // The panel of columns d, d + 1, .. of the block of `depth` rows that starts at row `begin`.
  const float* panel(const float* blocks, std::int64_t begin, std::int64_t depth, std::int64_t d) const {
    return blocks + begin * padded_size + d * depth;
  }
};

// A block of queries and a block of keys.
struct Tile {
  std::int64_t query_begin, query_end, key_begin, key_end;
  std::int64_t queries() const { return query_end - query_begin; }
  std::int64_t keys() const { return key_end - key_begin; }
};

template <class T>
void pack_transposed(const HeadMatrix<T>& from, std::int64_t rows, std::int64_t size, float* panels) {
  for (std::int64_t j = 0; j < rows; j += kPanelColumns) {
    pack_panel_transposed(from.row(j), from.stride, size, std::min(kPanelColumns, rows - j), panels + j * size);
  }
}

template <class T>
void pack_blocks(const HeadMatrix<T>& from, std::int64_t rows, std::int64_t block, const Work& work, float* panels) {
  for (std::int64_t i = 0; i < rows; i += block) {
    const std::int64_t depth = std::min(block, rows - i);
    pack_panels(from.row(i), from.stride, depth, work.size, panels + i * work.padded_size);
  }
}

// A float block for each operand of the head, one after the other in this thread's memory.
Work make_work(const AttentionHead& head) {
  const std::int64_t size = head.head_size, padded_size = round_up(size, kPanelColumns);
  const std::int64_t keys = round_up(head.keys, kPanelColumns), queries = round_up(head.queries, kPanelColumns);
  float* const packed_keys = scratch_floats(Scratch::kKeys, keys * (2 * size + padded_size));
  float* const packed_queries = scratch_floats(Scratch::kQueries, queries * (3 * padded_size + 1));
  float* const tiles = scratch_floats(Scratch::kTileA, 2 * kKeyBlock * (kQueryBlock + padded_size));
  return {.head = head,
          .size = size,
          .padded_size = padded_size,
          .keys_t = packed_keys,
          .values_t = packed_keys + keys * size,
          .keys = packed_keys + 2 * keys * size,
          .queries = packed_queries,
          .dout = packed_queries + queries * padded_size,
          .scores = tiles,
          .gradients = tiles + kKeyBlock * kQueryBlock,
          .q_rows = {},
          .dout_rows = {},
          .dq = packed_queries + 2 * queries * padded_size,
          .dk = tiles + 2 * kKeyBlock * kQueryBlock,
          .dv = tiles + kKeyBlock * (2 * kQueryBlock + padded_size),
          .products = packed_queries + 3 * queries * padded_size};
}

// A matrix in fp32: where it is if it is that, else converted.
template <class T>
HeadMatrix<const float> float_rows(const HeadMatrix<T>& from, std::int64_t rows, std::int64_t size, float* converted) {
  if constexpr (std::is_same_v<T, float>) {
    return {from.data, from.stride};
  } else {
    for (std::int64_t i = 0; i < rows; ++i) widen_row(from.row(i), size, converted + i * size);
    return {converted, size};
  }
}

template <class T>
void pack_operands(const AttentionHead& head, const HeadMatrix<T>& dout, Work& work) {
  const auto q = head_of<T>(head.args.q, head.b, head.h), k = head_of<T>(head.args.k, head.b, head.h);
  const auto v = head_of<T>(head.args.v, head.b, head.h), out = head_of<T>(head.args.out, head.b, head.h);
  const std::int64_t converted = std::is_same_v<T, float> ? 0 : head.queries * work.size;
  float* const rows = scratch_floats(Scratch::kRows, 2 * converted);
  work.q_rows = float_rows(q, head.queries, work.size, rows);
  work.dout_rows = float_rows(dout, head.queries, work.size, rows + converted);
  pack_transposed(k, head.keys, work.size, work.keys_t);
  pack_transposed(v, head.keys, work.size, work.values_t);
  pack_blocks(k, head.keys, kKeyBlock, work, work.keys);
  pack_blocks(q, head.queries, kQueryBlock, work, work.queries);
  pack_blocks(dout, head.queries, kQueryBlock, work, work.dout);
  for (std::int64_t i = 0; i < head.queries; ++i) {
    work.products[i] = sum_over(work.size, [&](std::int64_t d, auto access) HWY_ATTR {
      return hn::Mul(access.load(dout.row(i) + d), access.load(out.row(i) + d));
    });
  }
}

// scores = q k^T and gradients = dout v^T, but for register tiles that no query sees.
void multiply_scores(const Work& work, const Tile& tile) {
  for (std::int64_t j = tile.key_begin; j < tile.key_end; j += kPanelColumns) {
    const std::int64_t hidden =
        std::max(std::int64_t{0}, work.head.first_query(j) - tile.query_begin) / kTileRows * kTileRows;
    const std::int64_t first = tile.query_begin + hidden;
    const std::int64_t rows = std::min(tile.query_end, work.head.end_query(j + kPanelColumns - 1)) - first;
    const std::int64_t at = hidden * kKeyBlock + j - tile.key_begin;
    multiply_panel<false>(rows, kPanelColumns, work.size, work.q_rows.row(first), work.q_rows.stride,
                          work.keys_t + j * work.size, work.scores + at, kKeyBlock, false);
    multiply_panel<false>(rows, kPanelColumns, work.size, work.dout_rows.row(first), work.dout_rows.stride,
                          work.values_t + j * work.size, work.gradients + at, kKeyBlock, false);
  }
}

// In place: scores become M P, and gradients become dS; zero for keys that a query does not see.
void differentiate_softmax(const Work& work, const Tile& tile, DropoutMask& mask) {
  const FloatTag d;
  const AttentionHead& head = work.head;
  const FloatVector scale = constant(static_cast<float>(head.args.scale));
  const bool drops = head.args.dropout.active();
  for (std::int64_t i = tile.query_begin; i < tile.query_end; ++i) {
    float* const p_row = work.scores + (i - tile.query_begin) * kKeyBlock;
    float* const gradient_row = work.gradients + (i - tile.query_begin) * kKeyBlock;
    std::int64_t from = std::max(std::int64_t{0}, head.first_key(i) - tile.key_begin);
    std::int64_t seen = std::clamp(head.keys_seen(i) - tile.key_begin, std::int64_t{0}, tile.keys());
    if (from >= seen) from = seen = 0;
    const std::int64_t aligned = from / kFloatLanes * kFloatLanes;
    const FloatVector shift = constant(head.log_sum_exp[i]), product = constant(work.products[i]);
    if (drops) mask.generate(head.element(i, tile.key_begin), seen);
    for (std::int64_t c = 0; c < aligned; c += kFloatLanes) {
      hn::Store(hn::Zero(d), d, p_row + c);
      hn::Store(hn::Zero(d), d, gradient_row + c);
    }
    for (std::int64_t c = aligned; c < seen; c += kFloatLanes) {
      FloatVector p = exp(hn::MulSub(hn::Load(d, p_row + c), scale, shift));
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
    for (std::int64_t c = std::max(aligned, round_up(seen, kFloatLanes)); c < kKeyBlock; c += kFloatLanes) {
      hn::Store(hn::Zero(d), d, p_row + c);
      hn::Store(hn::Zero(d), d, gradient_row + c);
    }
  }
}

// dk += dS^T q and dv += (M P)^T dout: each tile of keys from the first query that sees one of them to the last one.
void add_key_gradients(const Work& work, const Tile& tile, bool accumulate) {
  for (std::int64_t j = tile.key_begin; j < tile.key_end; j += kTileRows) {
    const std::int64_t rows = std::min<std::int64_t>(kTileRows, tile.key_end - j);
    const std::int64_t skipped = std::max(std::int64_t{0}, work.head.first_query(j) - tile.query_begin);
    const std::int64_t end = std::min(tile.query_end, work.head.end_query(j + rows - 1)) - tile.query_begin;
    const std::int64_t depth = std::max(std::int64_t{0}, end - skipped);
    if (depth == 0 && accumulate) continue;
    const std::int64_t from = skipped * kKeyBlock + j - tile.key_begin;
    for (std::int64_t d = 0; d < work.padded_size; d += kPanelColumns) {
      const std::int64_t to = (j - tile.key_begin) * work.padded_size + d;
      const std::int64_t row = std::min(skipped, tile.queries()) * kPanelColumns;
      multiply_panel<true>(rows, kPanelColumns, depth, work.gradients + from, kKeyBlock,
                           work.panel(work.queries, tile.query_begin, tile.queries(), d) + row, work.dk + to,
                           work.padded_size, accumulate);
      multiply_panel<true>(rows, kPanelColumns, depth, work.scores + from, kKeyBlock,
                           work.panel(work.dout, tile.query_begin, tile.queries(), d) + row, work.dv + to,
                           work.padded_size, accumulate);
    }
  }
}

// dq (+)= dS k: each tile of queries from where its first one sees as far as its last one.
void add_query_gradients(const Work& work, const Tile& tile) {
  for (std::int64_t d = 0; d < work.padded_size; d += kPanelColumns) {
    const float* const panel = work.panel(work.keys, tile.key_begin, tile.keys(), d);
    for (std::int64_t i = tile.query_begin; i < tile.query_end; i += kTileRows) {
      const std::int64_t end = std::min(tile.query_end, i + kTileRows);
      const std::int64_t first_key = work.head.first_key(i);
      const std::int64_t from = std::max(std::int64_t{0}, first_key - tile.key_begin);
      const std::int64_t seen = std::min(work.head.keys_seen(end - 1) - tile.key_begin, tile.keys()) - from;
      if (seen <= 0) continue;
      // The block of its first key is the first that comes by.
      multiply_panel<false>(end - i, kPanelColumns, seen, work.gradients + (i - tile.query_begin) * kKeyBlock + from,
                            kKeyBlock, panel + from * kPanelColumns, work.dq + i * work.padded_size + d,
                            work.padded_size, tile.key_begin > first_key);
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

// The key block's part of dk and dv, which are of type T.
template <class T>
void write_key_gradients(const AttentionBackward& args, const Work& work, std::int64_t key, std::int64_t key_end) {
  const auto dk = head_of<T>(args.dk, work.head.b, work.head.h), dv = head_of<T>(args.dv, work.head.b, work.head.h);
  const auto scale = static_cast<float>(args.forward.scale);
  write_rows<T>({dk.row(key), dk.stride}, work.dk, work.padded_size, key_end - key, work.size, scale,
                args.accumulate_kv);
  write_rows<T>({dv.row(key), dv.stride}, work.dv, work.padded_size, key_end - key, work.size, 1, args.accumulate_kv);
}

// dk and dv of keys [begin, end), which no query sees.
template <class KeyGradient>
void clear_key_gradients(const AttentionBackward& args, const AttentionHead& head, std::int64_t begin,
                         std::int64_t end) {
  if (args.accumulate_kv) return;
  for (const TensorRef& view : {args.dk, args.dv}) {
    clear_rows(head_of<KeyGradient>(view, head.b, head.h), begin, end, head.head_size);
  }
}

// The gradients of padding.
template <class T, class KeyGradient>
void clear_padding(const AttentionBackward& args, const AttentionHead& head) {
  clear_rows(head_of<T>(args.dq, head.b, head.h), head.queries, args.dq.dim(1), head.head_size);
  clear_key_gradients<KeyGradient>(args, head, head.keys, args.dk.dim(1));
}

// T: of what the layers read and write; KeyGradient: of dk and dv.
template <class T, class KeyGradient>
void differentiate_head(const AttentionBackward& args, std::int64_t b, std::int64_t h) {
  const AttentionHead head{.args = args.forward, .b = b, .h = h};
  clear_padding<T, KeyGradient>(args, head);
  if (head.queries == 0) return;
  Work work = make_work(head);
  pack_operands(head, head_of<T>(args.dout, b, h), work);
  DropoutMask mask(args.forward.dropout);
  for (std::int64_t key = 0; key < head.keys; key += kKeyBlock) {
    const std::int64_t key_end = std::min(head.keys, key + kKeyBlock);
    const std::int64_t end_query = head.end_query(key_end - 1);
    const std::int64_t first_block = head.first_query(key) / kQueryBlock * kQueryBlock;
    if (first_block >= end_query) {
      clear_key_gradients<KeyGradient>(args, head, key, key_end);
      continue;
    }
    for (std::int64_t query = first_block; query < end_query; query += kQueryBlock) {
      const Tile tile{query, std::min(head.queries, query + kQueryBlock), key, key_end};
      multiply_scores(work, tile);
      differentiate_softmax(work, tile, mask);
      add_key_gradients(work, tile, query > first_block);
      add_query_gradients(work, tile);
    }
    write_key_gradients<KeyGradient>(args, work, key, key_end);
  }
  write_rows(head_of<T>(args.dq, b, h), work.dq, work.padded_size, head.queries, work.size,
             static_cast<float>(args.forward.scale), false);
}

using DifferentiateHead = void (*)(const AttentionBackward&, std::int64_t, std::int64_t);

DifferentiateHead backward_kernel(const AttentionBackward& args) {
  const bool sums_stay = args.dk.dtype == DType::kF32;
  return choose_by_storage(args.dq.dtype, [&]<class T>(ElementType<T>) -> DifferentiateHead {
    return sums_stay ? &differentiate_head<T, float> : &differentiate_head<T, T>;
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

}  // namespace

void CpuBackend::do_attention_backward(const AttentionBackward& args) {
  const std::int64_t heads = args.forward.q.dim(2);
  const auto kernel = HWY_DYNAMIC_DISPATCH(backward_kernel)(args);
  parallel_for(args.forward.q.dim(0) * heads, 1,
               [&](std::int64_t task, std::int64_t) { kernel(args, task / heads, task % heads); });
}

}  // namespace teratron
#endif  // HWY_ONCE
