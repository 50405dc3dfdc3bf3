#include "ops/cuda/cudnn/takes_cudnn.h"

namespace teratron::cuda {
namespace {

constexpr std::int64_t kLargestHead = 128, kAlignment = 16;  // elements; bytes

bool is_aligned(const TensorRef& view) { return reinterpret_cast<std::uintptr_t>(view.data) % kAlignment == 0; }

bool has_aligned_rows(const TensorRef& view) {
  bool aligned = is_aligned(view);
  for (const int axis : {0, 1, 2}) aligned = aligned && view.stride(axis) * size_of(view.dtype) % kAlignment == 0;
  return aligned;
}

}  // namespace

bool takes_cudnn(const AttentionForward& args, int compute_capability_major) {
  const std::int64_t head_size = args.q.dim(3);
  if (compute_capability_major < 8 || size_of(args.q.dtype) != 2 || args.dropout.active()) return false;
  if (args.lengths || args.first_keys) return false;
  // The library leaves single queries to kernels for inference, which keep no statistics.
  if (head_size % 8 != 0 || head_size > kLargestHead || args.q.dim(1) < 2) return false;
  bool aligned = is_aligned(args.log_sum_exp);
  for (const TensorRef& view : {args.out, args.q, args.k, args.v}) aligned = aligned && has_aligned_rows(view);
  return aligned;
}

bool takes_cudnn(const AttentionBackward& args, int compute_capability_major) {
  if (!takes_cudnn(args.forward, compute_capability_major) || args.accumulate_kv) return false;
  bool fit = true;
  for (const TensorRef& view : {args.dq, args.dk, args.dv, args.dout}) {
    fit = fit && view.dtype == args.forward.q.dtype && has_aligned_rows(view);
  }
  return fit;
}

}  // namespace teratron::cuda
