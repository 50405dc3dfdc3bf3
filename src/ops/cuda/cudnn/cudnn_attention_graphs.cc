#include "ops/cuda/cudnn/cudnn_attention_graphs.h"

#include <initializer_list>
#include <limits>

namespace teratron::cuda {
namespace {

constexpr std::int64_t kLargestHead = 128, kAlignment = 16;  // elements; bytes

bool is_aligned(const TensorRef& view) { return reinterpret_cast<std::uintptr_t>(view.data) % kAlignment == 0; }

bool has_aligned_rows(const TensorRef& view) {
  bool aligned = is_aligned(view);
  for (const int axis : {0, 1, 2}) aligned = aligned && view.stride(axis) * size_of(view.dtype) % kAlignment == 0;
  return aligned;
}

// [B, S, H, D] as [B, H, S, D].
Extents sizes_of(const TensorRef& view) { return {view.dim(0), view.dim(2), view.dim(1), view.dim(3)}; }
Extents strides_of(const TensorRef& view) { return {view.stride(0), view.stride(2), view.stride(1), view.stride(3)}; }

TensorId heads(Graph& graph, const TensorRef& view) {
  return graph.memory(view.dtype, sizes_of(view), strides_of(view));
}

TensorId transposed_heads(Graph& graph, const TensorRef& view) {
  return graph.memory(view.dtype, transposed(sizes_of(view)), transposed(strides_of(view)));
}

// One fp32 number for each query: [B, H, S_q, 1].
TensorId row_numbers(Graph& graph, const TensorRef& q) {
  const Extents sizes = {q.dim(0), q.dim(2), q.dim(1), 1};
  return graph.memory(DType::kF32, sizes, contiguous_strides(sizes));
}

// Scores of keys that a query does not see become minus infinity: query i sees key j where i + S_k - S_q >= j.
TensorId masked(Graph& graph, TensorId scores, const AttentionForward& args) {
  if (!args.causal) return scores;
  const std::int64_t queries = args.q.dim(1), keys = args.k.dim(1);
  TensorId row = graph.index(scores, 2);
  const TensorId column = graph.index(scores, 3);
  if (keys != queries) {
    row = graph.shifted_index(Pointwise::kAdd, row, graph.value(static_cast<std::int32_t>(keys)));
    row = graph.shifted_index(Pointwise::kSubtract, row, graph.value(static_cast<std::int32_t>(queries)));
  }
  const TensorId seen = graph.at_least(row, column);
  return graph.select(seen, scores, graph.value(-std::numeric_limits<float>::infinity()));
}

// P, rounded to the type that it is multiplied in; writes L.
TensorId softmax(Graph& graph, TensorId scores, TensorId log_sum_exp, DType dtype) {
  const TensorId largest = graph.reduce(Reduction::kMax, scores);
  const TensorId exponentials =
      graph.pointwise(Pointwise::kExp, graph.pointwise(Pointwise::kSubtract, scores, largest));
  const TensorId sum = graph.reduce(Reduction::kSum, exponentials);
  graph.pointwise_to(log_sum_exp, Pointwise::kAdd, largest, graph.pointwise(Pointwise::kLog, sum));
  const TensorId probabilities = graph.intermediate(dtype, graph.tensor(scores).sizes);
  graph.pointwise_to(probabilities, Pointwise::kDivide, exponentials, sum);
  return probabilities;
}

// D, for which the library wants memory of the caller's, as the result of an operation that is no sum.
void sum_products(Graph& graph, TensorId products, TensorId dout, TensorId out) {
  const Extents sizes = graph.tensor(dout).sizes;
  // Not contiguous, and never stored: these strides are part of what the library recognises.
  const Extents strides = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[1] * sizes[3], 1};
  const TensorId all = graph.intermediate(DType::kF32, sizes, strides);
  graph.pointwise_to(all, Pointwise::kMultiply, dout, out);
  graph.pointwise_to(products, Pointwise::kMultiply, graph.reduce(Reduction::kSum, all), graph.value(1.0F));
}

}  // namespace

bool takes_cudnn(const AttentionForward& args, int compute_capability_major) {
  const std::int64_t head_size = args.q.dim(3);
  if (compute_capability_major < 8 || size_of(args.q.dtype) != 2 || args.dropout.active()) return false;
  if (args.lengths) return false;
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

AttentionForwardGraph attention_graph(const AttentionForward& args) {
  AttentionForwardGraph made = {};
  Graph& graph = made.graph;
  made.q = heads(graph, args.q);
  made.k = transposed_heads(graph, args.k);
  made.v = heads(graph, args.v);
  made.out = heads(graph, args.out);
  made.log_sum_exp = row_numbers(graph, args.q);
  const TensorId products = graph.matmul(made.q, made.k);
  const TensorId scores = graph.pointwise(Pointwise::kMultiply, products, graph.value(static_cast<float>(args.scale)));
  const TensorId probabilities = softmax(graph, masked(graph, scores, args), made.log_sum_exp, args.q.dtype);
  graph.matmul_to(made.out, probabilities, made.v);
  return made;
}

AttentionBackwardGraph attention_graph(const AttentionBackward& args) {
  const AttentionForward& forward = args.forward;
  const DType dtype = forward.q.dtype;
  AttentionBackwardGraph made = {};
  Graph& graph = made.graph;
  made.q = heads(graph, forward.q);
  made.k = transposed_heads(graph, forward.k);
  made.v = transposed_heads(graph, forward.v);
  made.out = heads(graph, forward.out);
  made.log_sum_exp = row_numbers(graph, forward.q);
  made.dout = heads(graph, args.dout);
  made.dq = heads(graph, args.dq);
  made.dk = heads(graph, args.dk);
  made.dv = heads(graph, args.dv);
  made.products = row_numbers(graph, forward.q);
  made.dq_sums = graph.memory(DType::kF32, sizes_of(forward.q), contiguous_strides(sizes_of(forward.q)));
  const TensorId scale = graph.value(static_cast<float>(forward.scale));

  sum_products(graph, made.products, made.dout, made.out);

  const TensorId scores = graph.pointwise(Pointwise::kMultiply, graph.matmul(made.q, made.k), scale);
  const TensorId logarithms = graph.pointwise(Pointwise::kSubtract, scores, made.log_sum_exp);
  const TensorId probabilities = graph.pointwise(Pointwise::kExp, masked(graph, logarithms, forward));
  graph.matmul_to(made.dv, graph.transpose(probabilities, dtype), made.dout);

  const TensorId dprobabilities = graph.matmul(made.dout, made.v);
  const TensorId centred = graph.pointwise(Pointwise::kSubtract, dprobabilities, made.products);
  const TensorId weighted = graph.pointwise(Pointwise::kMultiply, centred, probabilities);
  const TensorId dscores = graph.pointwise(Pointwise::kMultiply, weighted, scale);
  graph.matmul_to(made.dk, graph.transpose(dscores, dtype), made.q);
  graph.matmul_to(made.dq_sums, dscores, graph.transpose(made.k, dtype));
  graph.pointwise_to(made.dq, Pointwise::kIdentity, made.dq_sums);
  return made;
}

}  // namespace teratron::cuda
