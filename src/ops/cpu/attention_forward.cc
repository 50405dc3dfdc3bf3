// Attention forward in tiles that never hold a whole row of scores (FlashAttention, Dao et al., arXiv 2205.14135): for
// each block of queries, tiles of keys update a running maximum, a running sum and an unnormalised output.
#include "ops/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/attention_forward.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>
#include <limits>

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

void scale_row(float* row, std::int64_t count, float factor) {
  for_each_vector(count, [&](std::int64_t d, auto access)
                             HWY_ATTR { access.store(hn::Mul(access.load(row + d), constant(factor)), row + d); });
}

// Turns a tile of q k^T into exp(scale * score - max) in place, with zeros for keys that a query does not see, and
// brings the running maximum, sum and output of each query up to date.
void softmax_tile(const AttentionForward& args, const AttentionTile& tile, float* scores, float* max, float* sum,
                  MatrixRef out) {
  const auto scale = static_cast<float>(args.scale);
  DropoutMask mask(args.dropout);
  for (std::int64_t i = 0; i < tile.queries; ++i) {
    float* const row = scores + i * kKeyTile;
    const std::int64_t seen = tile.keys_seen(args, i);
    std::fill(row + seen, row + tile.keys, 0.0F);
    if (seen == 0) continue;
    const float new_max = std::max(max[i], scale * max_of(row, seen));
    const FloatVector shift = constant(new_max), factor = constant(scale);
    const float row_sum = sum_over(seen, [&](std::int64_t c, auto access) HWY_ATTR {
      const FloatVector p = exp(hn::MulSub(access.load(row + c), factor, shift));
      access.store(p, row + c);
      return p;
    });
    if (new_max > max[i]) {
      const float correction = std::exp(max[i] - new_max);
      sum[i] *= correction;
      scale_row(out.data + i * out.stride, args.q.dim(3), correction);
      max[i] = new_max;
    }
    sum[i] += row_sum;
    if (args.dropout.active()) {
      mask.generate(tile.first_element(args, i), seen);
      for_each_vector(seen, [&](std::int64_t c, auto access)
                                HWY_ATTR { access.store(mask.apply(access.load(row + c), c), row + c); });
    }
  }
}

void finish_rows(MatrixRef out, const float* max, const float* sum, float* log_sum_exp, std::int64_t rows,
                 std::int64_t head_size) {
  for (std::int64_t i = 0; i < rows; ++i) {
    scale_row(out.data + i * out.stride, head_size, 1 / sum[i]);
    log_sum_exp[i] = max[i] + std::log(sum[i]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(softmax_tile);
HWY_EXPORT(finish_rows);

// One head's queries [begin, end).
void attend(const AttentionForward& args, std::int64_t b, std::int64_t h, std::int64_t begin, std::int64_t end) {
  const std::int64_t keys = args.k.dim(1), head_size = args.q.dim(3);
  const MatrixRef q = head_of(args.q, b, h).from_row(begin), k = head_of(args.k, b, h), v = head_of(args.v, b, h);
  const MatrixRef out = head_of(args.out, b, h).from_row(begin);
  float* const scores = scratch_floats(Scratch::kTileA, kQueryTile * kKeyTile);
  float max[kQueryTile], sum[kQueryTile] = {};
  std::fill(max, max + kQueryTile, -std::numeric_limits<float>::infinity());
  for (std::int64_t i = 0; i < end - begin; ++i) std::fill_n(out.data + i * out.stride, head_size, 0.0F);
  AttentionTile tile{b, h, begin, end - begin, 0, 0};
  for (tile.first_key = 0; tile.first_key < keys; tile.first_key += kKeyTile) {
    tile.keys = std::min(kKeyTile, keys - tile.first_key);
    if (tile.is_hidden(args)) break;
    gemm(Transpose::kNo, Transpose::kYes, tile.queries, tile.keys, head_size, 1, q.data, q.stride,
         k.from_row(tile.first_key).data, k.stride, 0, scores, kKeyTile);
    HWY_DYNAMIC_DISPATCH(softmax_tile)(args, tile, scores, max, sum, out);
    gemm(Transpose::kNo, Transpose::kNo, tile.queries, head_size, tile.keys, 1, scores, kKeyTile,
         v.from_row(tile.first_key).data, v.stride, 1, out.data, out.stride);
  }
  float* const log_sum_exp = args.log_sum_exp.as<float>() + (b * args.q.dim(2) + h) * args.q.dim(1) + begin;
  HWY_DYNAMIC_DISPATCH(finish_rows)(out, max, sum, log_sum_exp, end - begin, head_size);
}

}  // namespace

void CpuBackend::do_attention_forward(const AttentionForward& args) {
  const std::int64_t queries = args.q.dim(1), heads = args.q.dim(2);
  const std::int64_t blocks = (queries + kQueryTile - 1) / kQueryTile;
  parallel_for(args.q.dim(0) * heads * blocks, 1, [&](std::int64_t task, std::int64_t) {
    const std::int64_t begin = task % blocks * kQueryTile, head = task / blocks;
    attend(args, head / heads, head % heads, begin, std::min(queries, begin + kQueryTile));
  });
}

}  // namespace teratron
#endif  // HWY_ONCE
