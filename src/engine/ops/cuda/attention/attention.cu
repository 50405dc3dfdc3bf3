// Attention: the choice of kernels, and the statistics of every query that the backward pass needs first.
#include "ops/cuda/attention/attention.h"

#include "ops/cuda/attention/attention_hopper.h"
#include "ops/cuda/attention/attention_matrices.h"
#include "ops/cuda/cuda_backend.h"
#include "ops/storage.h"

namespace teratron {
namespace cuda {
namespace {

constexpr int kThreads = 256, kLanes = 8;  // of a query

// Computes the statistics of queries without padding. Eight lanes take a query, each 16 bytes at a time where rows are
// aligned to that.
template <class T>
__global__ void __launch_bounds__(kThreads)
    compute_statistics(QueryStatistics* statistics, HeadsView<const T> out, HeadsView<const T> dout,
                       const float* log_sum_exp, AttentionSizes sizes, bool vectors) {
  const std::int64_t n = std::int64_t{blockIdx.x} * (kThreads / kLanes) + threadIdx.x / kLanes;  // [B, H, S_q]
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  float product = 0;
  const int query = static_cast<int>(n % sizes.all_queries), head = static_cast<int>(n / sizes.all_queries);
  const bool given = head < sizes.batch * sizes.heads && query < sizes.without_padding(head / sizes.heads).queries;
  if (given) {
    const T* const a = out.head(head / sizes.heads, head % sizes.heads)(query);
    const T* const b = dout.head(head / sizes.heads, head % sizes.heads)(query);
    if (vectors) {
      constexpr int kSize = Vector<T>::kSize;
#pragma unroll 2
      for (int c = lane * kSize; c < sizes.head_size; c += kLanes * kSize) {
        const Vector<T> left = load_vector(a + c), right = load_vector(b + c);
#pragma unroll
        for (int e = 0; e < kSize; ++e) product += widened(left[e]) * widened(right[e]);
      }
    } else {
      for (int c = lane; c < sizes.head_size; c += kLanes) product += widened(a[c]) * widened(b[c]);
    }
  }
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    product += __shfl_xor_sync(0xffffffffU, product, distance);
  }
  if (given && lane == 0) statistics[n] = {log_sum_exp[n] * kLog2E, product};
}

template <class T>
void compute_all_statistics(cudaStream_t stream, const AttentionBackward& args, QueryStatistics* statistics) {
  const TensorRef &out = args.forward.out, &dout = args.dout;
  const bool vectors = has_aligned_rows<T>(out) && has_aligned_rows<T>(dout) && out.dim(3) % Vector<T>::kSize == 0;
  launch(stream, shape_for(out.elements() / out.dim(3) * kLanes, kThreads), compute_statistics<T>, statistics,
         heads_of<const T>(out), heads_of<const T>(dout), args.forward.log_sum_exp.as<float>(), sizes_of(args.forward),
         vectors);
}

// Whether the device has the kernels for tensor cores, and they the mask: no registers are left for one of documents.
bool allows_matrices(const AttentionForward& args, const cudaDeviceProp& device) {
  return !args.first_keys && device.major >= 8;
}

}  // namespace

bool fits_matrices(const AttentionForward& args) {
  const std::int64_t head_size = args.q.dim(3);
  if (size_of(args.q.dtype) != 2 || head_size % 8 != 0 || head_size > kLargestMatrixHead) return false;
  bool fits = true;
  for (const TensorRef& view : {args.out, args.q, args.k, args.v}) fits = fits && has_aligned_rows<Bf16>(view);
  return fits;
}

bool fits_matrices(const AttentionBackward& args) {
  bool fits = fits_matrices(args.forward);
  for (const TensorRef& view : {args.dq, args.dout}) fits = fits && has_aligned_rows<Bf16>(view);
  for (const TensorRef& view : {args.dk, args.dv}) {
    fits = fits && (size_of(view.dtype) == 2 ? has_aligned_rows<Bf16>(view) : has_aligned_rows<float>(view));
  }
  return fits;
}

AttentionSizes sizes_of(const AttentionForward& args) {
  const auto queries = static_cast<int>(args.q.dim(1)), keys = static_cast<int>(args.k.dim(1));
  return {.batch = static_cast<int>(args.q.dim(0)),
          .heads = static_cast<int>(args.q.dim(2)),
          .head_size = static_cast<int>(args.q.dim(3)),
          .key_heads = static_cast<int>(args.key_heads()),
          .all_queries = queries,
          .all_keys = keys,
          .queries = queries,
          .keys = keys,
          .causal = args.causal,
          .scale = static_cast<float>(args.scale),
          .lengths = args.lengths ? args.lengths.as<const std::int32_t>() : nullptr,
          .first_keys = args.first_keys ? args.first_keys.as<const std::int32_t>() : nullptr};
}

AttentionMask mask_of(const AttentionForward& args) {
  const Dropout& dropout = args.dropout;
  return {.mask = DropoutMask(dropout),
          .first_head = dropout.first_head,
          .all_heads = dropout.heads,
          .sequence_length = dropout.sequence_length,
          .key_stride = dropout.key_stride(),
          .first_query = dropout.first_position,
          .first_key = dropout.first_position - (args.k.dim(1) - args.q.dim(1))};
}

}  // namespace cuda

void CudaBackend::do_attention_forward(const AttentionForward& args) {
  if (hopper_attention_ == KernelUse::kRequired) return cuda::attend_hopper(stream_, args);
  if (cudnn_attention_ && cudnn_attention_->forward(args, scratch_)) return;
  const bool fits = cuda::fits_matrices(args);
  if (fits && hopper_attention_ != KernelUse::kOff) return cuda::attend_hopper(stream_, args);
  const bool matrices = fits && cuda::allows_matrices(args, device_);
  matrices ? cuda::attend_matrices(stream_, args) : cuda::attend_any(stream_, args);
}

void CudaBackend::do_attention_backward(const AttentionBackward& args) {
  const bool requires_hopper = hopper_attention_ == KernelUse::kRequired;
  if (!requires_hopper && cudnn_attention_ && cudnn_attention_->backward(args, scratch_)) return;
  auto* const statistics = scratch_.of<cuda::QueryStatistics>(args.forward.q.elements() / args.forward.q.dim(3));
  choose_by_storage(compute_dtype_,
                    [&]<class T>(ElementType<T>) { cuda::compute_all_statistics<T>(stream_, args, statistics); });
  const bool fits = cuda::fits_matrices(args);
  if (requires_hopper || (fits && hopper_attention_ != KernelUse::kOff)) {
    return cuda::differentiate_attention_hopper(stream_, args, statistics);
  }
  if (!fits || !cuda::allows_matrices(args.forward, device_)) {
    return cuda::differentiate_attention_any(stream_, args, statistics);
  }
  cuda::add_key_gradients_matrices(stream_, args, statistics);
  cuda::add_query_gradients_matrices(stream_, args, statistics);
}

}  // namespace teratron
