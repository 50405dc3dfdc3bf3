// Attention backward in tiles (FlashAttention, Dao et al., arXiv 2205.14135): probabilities are computed again from the
// log-sum-exp that forward kept. With D_i = sum over the head of dout_i * out_i, for a tile of queries i and keys j:
//   P = exp(scale * q k^T - log_sum_exp),   dv_j += (M P)^T dout,   dS = scale * P * (M (dout v^T) - D),
//   dq_i += dS k,   dk_j += dS^T q,   M the dropout factors.
// A head belongs to one thread, and its tiles come in a fixed order: so do the sums.
#include "ops/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/attention_backward.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "base/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/dropout-inl.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/math-inl.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

// products[i] = dout_i . out_i
void row_products(MatrixRef dout, MatrixRef out, std::int64_t rows, std::int64_t head_size, float* products) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const float *const a = dout.from_row(i).data, *const b = out.from_row(i).data;
    products[i] = sum_over(head_size, [&](std::int64_t d, auto access)
                                          HWY_ATTR { return hn::Mul(access.load(a + d), access.load(b + d)); });
  }
}

// In place: scores (q k^T) become M P, and dp (dout v^T) becomes dS.
void differentiate_tile(const AttentionForward& args, const AttentionTile& tile, const float* log_sum_exp,
                        const float* products, float* scores, float* dp) {
  const FloatVector scale = constant(static_cast<float>(args.scale));
  DropoutMask mask(args.dropout);
  const bool drops = args.dropout.active();
  for (std::int64_t i = 0; i < tile.queries; ++i) {
    float *const p_row = scores + i * kKeyTile, *const dp_row = dp + i * kKeyTile;
    const std::int64_t seen = tile.keys_seen(args, i);
    const FloatVector shift = constant(log_sum_exp[i]), product = constant(products[i]);
    if (drops) mask.generate(tile.first_element(args, i), seen);
    for_each_vector(seen, [&](std::int64_t c, auto access) HWY_ATTR {
      const FloatVector p = exp(hn::MulSub(access.load(p_row + c), scale, shift));
      FloatVector dropped = p, gradient = access.load(dp_row + c);
      if (drops) {
        dropped = mask.apply(p, c);
        gradient = mask.apply(gradient, c);
      }
      access.store(dropped, p_row + c);
      access.store(hn::Mul(hn::Mul(p, scale), hn::Sub(gradient, product)), dp_row + c);
    });
    std::fill(p_row + seen, p_row + tile.keys, 0.0F);
    std::fill(dp_row + seen, dp_row + tile.keys, 0.0F);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(row_products);
HWY_EXPORT(differentiate_tile);

// The matrices of one head.
struct Head {
  MatrixRef q, k, v, dout, dq, dk, dv;
  const float *log_sum_exp, *products;
  std::int64_t size;
};

// Adds one tile's part to dq, dk and dv; where it is the first, overwrites instead (dk and dv: unless accumulating).
void add_tile(const AttentionBackward& args, const Head& head, const AttentionTile& tile, bool first_of_keys) {
  float* const scores = scratch_floats(Scratch::kTileA, kQueryTile * kKeyTile);
  float* const dp = scratch_floats(Scratch::kTileB, kQueryTile * kKeyTile);
  const MatrixRef q = head.q.from_row(tile.first_query), dout = head.dout.from_row(tile.first_query);
  const MatrixRef dq = head.dq.from_row(tile.first_query);
  const MatrixRef k = head.k.from_row(tile.first_key), v = head.v.from_row(tile.first_key);
  const MatrixRef dk = head.dk.from_row(tile.first_key), dv = head.dv.from_row(tile.first_key);
  gemm(Transpose::kNo, Transpose::kYes, tile.queries, tile.keys, head.size, 1, q.data, q.stride, k.data, k.stride, 0,
       scores, kKeyTile);
  gemm(Transpose::kNo, Transpose::kYes, tile.queries, tile.keys, head.size, 1, dout.data, dout.stride, v.data, v.stride,
       0, dp, kKeyTile);
  HWY_DYNAMIC_DISPATCH(differentiate_tile)
  (args.forward, tile, head.log_sum_exp + tile.first_query, head.products + tile.first_query, scores, dp);
  const float keep = args.accumulate_kv || !first_of_keys ? 1 : 0;
  gemm(Transpose::kYes, Transpose::kNo, tile.keys, head.size, tile.queries, 1, scores, kKeyTile, dout.data, dout.stride,
       keep, dv.data, dv.stride);
  gemm(Transpose::kYes, Transpose::kNo, tile.keys, head.size, tile.queries, 1, dp, kKeyTile, q.data, q.stride, keep,
       dk.data, dk.stride);
  gemm(Transpose::kNo, Transpose::kNo, tile.queries, head.size, tile.keys, 1, dp, kKeyTile, k.data, k.stride,
       tile.first_key == 0 ? 0 : 1, dq.data, dq.stride);
}

void differentiate_head(const AttentionBackward& args, std::int64_t b, std::int64_t h) {
  const AttentionForward& forward = args.forward;
  const std::int64_t queries = forward.q.dim(1), keys = forward.k.dim(1), head_size = forward.q.dim(3);
  float* const products = scratch_floats(Scratch::kRows, queries);
  const float* const log_sum_exp = forward.log_sum_exp.as<float>() + (b * forward.q.dim(2) + h) * queries;
  const Head head{head_of(forward.q, b, h),
                  head_of(forward.k, b, h),
                  head_of(forward.v, b, h),
                  head_of(args.dout, b, h),
                  head_of(args.dq, b, h),
                  head_of(args.dk, b, h),
                  head_of(args.dv, b, h),
                  log_sum_exp,
                  products,
                  head_size};
  HWY_DYNAMIC_DISPATCH(row_products)(head.dout, head_of(forward.out, b, h), queries, head_size, products);
  for (std::int64_t first_key = 0; first_key < keys; first_key += kKeyTile) {
    bool first_of_keys = true;
    for (std::int64_t first_query = 0; first_query < queries; first_query += kQueryTile) {
      const AttentionTile tile{b,           h,
                               first_query, std::min(kQueryTile, queries - first_query),
                               first_key,   std::min(kKeyTile, keys - first_key)};
      if (tile.is_hidden(forward)) continue;
      add_tile(args, head, tile, first_of_keys);
      first_of_keys = false;
    }
  }
}

}  // namespace

void CpuBackend::do_attention_backward(const AttentionBackward& args) {
  const std::int64_t heads = args.forward.q.dim(2);
  parallel_for(args.forward.q.dim(0) * heads, 1,
               [&](std::int64_t task, std::int64_t) { differentiate_head(args, task / heads, task % heads); });
}

}  // namespace teratron
#endif  // HWY_ONCE
