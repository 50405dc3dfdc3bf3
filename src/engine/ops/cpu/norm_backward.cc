// The gradient of layer norm and of RMS norm. With n = (x - mean) * rstd and g = dy * gamma:
//   dx = rstd * (g - mean(g) - n * mean(g * n)),   dgamma = sum over rows of dy * n,   dbeta = sum over rows of dy.
// In RMS norm mean and mean(g) are 0, and there is no dbeta.
// Blocks of rows, whose number depends on the shape alone, each sum their part of dgamma and dbeta; the parts are then
// added in order.
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/norm_backward.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "base/block_size.h"
#include "base/host/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

struct RowSums {
  float g, gn;
};

// Adds the row to the sums of dgamma and dbeta, and returns the sums over the row that dx needs.
template <bool is_rms, class T>
RowSums reduce_row(const T* dy, const T* x, const T* gamma, float mean, float rstd, std::int64_t hidden, float* dgamma,
                   float* dbeta) {
  FloatVector g_sum = constant(0), gn_sum = constant(0);
  for_each_vector(hidden, [&](std::int64_t j, auto access) HWY_ATTR {
    const FloatVector d = access.load(dy + j);
    const FloatVector n = hn::Mul(hn::Sub(access.load(x + j), constant(mean)), constant(rstd));
    const FloatVector g = hn::Mul(d, access.load(gamma + j));  // zero in the lanes beyond the row
    gn_sum = hn::MulAdd(g, n, gn_sum);
    access.store(hn::MulAdd(d, n, access.load(dgamma + j)), dgamma + j);
    if constexpr (!is_rms) {
      g_sum = hn::Add(g_sum, g);
      access.store(hn::Add(d, access.load(dbeta + j)), dbeta + j);
    }
  });
  return {sum_of_lanes(g_sum), sum_of_lanes(gn_sum)};
}

template <bool accumulate, class T>
void differentiate_row(T* dx, const T* dy, const T* x, const T* gamma, float mean, float rstd, std::int64_t hidden,
                       RowSums sums) {
  const auto size = static_cast<float>(hidden);
  const FloatVector mean_g = constant(sums.g / size), mean_gn = constant(sums.gn / size);
  for_each_vector(hidden, [&](std::int64_t j, auto access) HWY_ATTR {
    const FloatVector n = hn::Mul(hn::Sub(access.load(x + j), constant(mean)), constant(rstd));
    const FloatVector centred = hn::MulSub(access.load(dy + j), access.load(gamma + j), mean_g);
    const FloatVector gradient = hn::Mul(constant(rstd), hn::NegMulAdd(n, mean_gn, centred));
    access.store(accumulate ? hn::Add(access.load(dx + j), gradient) : gradient, dx + j);
  });
}

// sums: [2, hidden], this block's part of dgamma and dbeta.
template <bool is_rms, class T>
void norm_backward_rows(const NormBackward& args, std::int64_t begin, std::int64_t end, float* sums) {
  const std::int64_t hidden = args.x.dim(1);
  const T* const gamma = args.gamma.as<T>();
  std::fill(sums, sums + 2 * hidden, 0.0F);
  for (std::int64_t row = begin; row < end; ++row) {
    const T *const dy = args.dy.as<T>() + row * hidden, *const x = args.x.as<T>() + row * hidden;
    T* const dx = args.dx.as<T>() + row * hidden;
    const float mean = is_rms ? 0 : args.mean.as<float>()[row], rstd = args.rstd.as<float>()[row];
    const RowSums row_sums = reduce_row<is_rms>(dy, x, gamma, mean, rstd, hidden, sums, sums + hidden);
    if (args.accumulate_dx) {
      differentiate_row<true>(dx, dy, x, gamma, mean, rstd, hidden, row_sums);
    } else {
      differentiate_row<false>(dx, dy, x, gamma, mean, rstd, hidden, row_sums);
    }
  }
}

using BackwardRows = void (*)(const NormBackward&, std::int64_t, std::int64_t, float*);

BackwardRows norm_backward_kernel(DType dtype, bool is_rms) {
  return choose_by_storage(dtype, [&]<class T>(ElementType<T>) -> BackwardRows {
    return is_rms ? &norm_backward_rows<true, T> : &norm_backward_rows<false, T>;
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(norm_backward_kernel);

// At least this many rows a block, and at most this many blocks.
constexpr std::int64_t kRowsPerBlock = block_size(32, 1), kMaxBlocks = block_size(256, 7);

void add_parts(float* total, const float* parts, std::int64_t blocks, std::int64_t stride, std::int64_t size,
               bool accumulate) {
  if (!accumulate) std::fill(total, total + size, 0.0F);
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::int64_t j = 0; j < size; ++j) total[j] += parts[block * stride + j];
  }
}

}  // namespace

void include_norm_backward(std::int64_t rows, std::int64_t hidden, ScratchSizes& sizes) {
  const std::int64_t blocks = std::min(kMaxBlocks, (rows + kRowsPerBlock - 1) / kRowsPerBlock);
  sizes.include(Scratch::kReduction, blocks * 2 * hidden);
}

void CpuBackend::do_norm_backward(const NormBackward& args) {
  const std::int64_t rows = args.x.dim(0), hidden = args.x.dim(1);
  const std::int64_t grain = std::max(kRowsPerBlock, (rows + kMaxBlocks - 1) / kMaxBlocks);
  const std::int64_t blocks = (rows + grain - 1) / grain;
  float* const parts = scratch_floats(Scratch::kReduction, blocks * 2 * hidden);
  const auto kernel = HWY_DYNAMIC_DISPATCH(norm_backward_kernel)(args.x.dtype, args.is_rms());
  parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    kernel(args, begin, end, parts + begin / grain * 2 * hidden);
  });
  if (!args.dgamma) return;
  add_parts(args.dgamma.as<float>(), parts, blocks, 2 * hidden, hidden, args.accumulate);
  if (args.is_rms()) return;
  add_parts(args.dbeta.as<float>(), parts + hidden, blocks, 2 * hidden, hidden, args.accumulate);
}

void CpuBackend::do_residual_add_norm_backward(const ResidualAddNormBackward& args) {
  do_norm_backward(args.norm);
  do_dropout_backward(args.add);
}

}  // namespace teratron
#endif  // HWY_ONCE
