#include "ops/cuda/cudnn/cudnn_attention.h"

#include <atomic>
#include <bit>
#include <cstdio>

#include "base/error.h"

namespace teratron::cuda {
namespace {

constexpr std::int64_t kAlignment = 256;  // bytes: of the parts of a scratch block

std::int64_t rounded_up(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::vector<std::int64_t> key_of(const AttentionForward& args) {
  std::vector<std::int64_t> key = {static_cast<std::int64_t>(args.q.dtype),
                                   args.causal,
                                   std::bit_cast<std::int64_t>(args.scale),
                                   args.q.dim(0),
                                   args.q.dim(1),
                                   args.k.dim(1),
                                   args.q.dim(2),
                                   args.q.dim(3)};
  for (const TensorRef& view : {args.out, args.q, args.k, args.v}) {
    for (const int axis : {0, 1, 2}) key.push_back(view.stride(axis));
  }
  return key;
}

std::vector<std::int64_t> key_of(const AttentionBackward& args) {
  std::vector<std::int64_t> key = key_of(args.forward);
  for (const TensorRef& view : {args.dq, args.dk, args.dv, args.dout}) {
    for (const int axis : {0, 1, 2}) key.push_back(view.stride(axis));
  }
  return key;
}

const AttentionForward& forward_of(const AttentionForward& args) { return args; }
const AttentionForward& forward_of(const AttentionBackward& args) { return args.forward; }

// Once in a process: every rank that is a thread would say the same.
void tell_of_own_kernels(const AttentionForward& args, const std::exception& reason) {
  static std::atomic_flag told;
  if (told.test_and_set()) return;
  fmt::print(stderr,
             "cuDNN does not take attention of {} queries on {} keys, {} heads of {}, so Teratron's own kernels do "
             "({}); said once, of the first such shape\n",
             args.q.dim(1), args.k.dim(1), args.q.dim(2), args.q.dim(3), reason.what());
}

}  // namespace

CudnnAttention::CudnnAttention(cudaStream_t stream, int compute_capability_major)
    : engine_(stream), compute_capability_major_(compute_capability_major) {}

template <class AttentionGraph, class Args>
const CudnnAttention::Plan<AttentionGraph>& CudnnAttention::plan_for(std::map<Key, Plan<AttentionGraph>>& plans,
                                                                     const Args& args) {
  auto [place, is_new] = plans.try_emplace(key_of(args));
  Plan<AttentionGraph>& made = place->second;
  if (!is_new) return made;
  made.tensors = attention_graph(args);
  try {
    made.plan = engine_.plan(made.tensors.graph);
  } catch (const EnvironmentError& reason) {
    tell_of_own_kernels(forward_of(args), reason);
  }
  return made;
}

bool CudnnAttention::forward(const AttentionForward& args, Scratch& scratch) {
  if (!takes_cudnn(args, compute_capability_major_)) return false;
  const auto& [tensors, plan] = plan_for(forward_, args);
  if (plan == nullptr) return false;
  const Binding bindings[] = {{tensors.q, args.q.data},
                              {tensors.k, args.k.data},
                              {tensors.v, args.v.data},
                              {tensors.out, args.out.data},
                              {tensors.log_sum_exp, args.log_sum_exp.data}};
  engine_.run(*plan, bindings, scratch.bytes(CudnnEngine::workspace_bytes(*plan)));
  return true;
}

bool CudnnAttention::backward(const AttentionBackward& args, Scratch& scratch) {
  if (!takes_cudnn(args, compute_capability_major_)) return false;
  const auto& [tensors, plan] = plan_for(backward_, args);
  if (plan == nullptr) return false;
  const std::int64_t elements = args.forward.q.elements(), rows = elements / args.forward.q.dim(3);
  const std::int64_t products = rounded_up(rows * size_of(DType::kF32));
  const std::int64_t sums = rounded_up(elements * size_of(DType::kF32));
  auto* const memory = static_cast<std::byte*>(scratch.bytes(products + sums + CudnnEngine::workspace_bytes(*plan)));
  const Binding bindings[] = {{tensors.q, args.forward.q.data},
                              {tensors.k, args.forward.k.data},
                              {tensors.v, args.forward.v.data},
                              {tensors.out, args.forward.out.data},
                              {tensors.log_sum_exp, args.forward.log_sum_exp.data},
                              {tensors.dout, args.dout.data},
                              {tensors.dq, args.dq.data},
                              {tensors.dk, args.dk.data},
                              {tensors.dv, args.dv.data},
                              {tensors.products, memory},
                              {tensors.dq_sums, memory + products}};
  engine_.run(*plan, bindings, memory + products + sums);
  return true;
}

}  // namespace teratron::cuda
