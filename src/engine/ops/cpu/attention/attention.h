// A head's matrices, and which keys a query sees: shared by the files of attention.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numbers>

#include "ops/backend.h"
#include "ops/cpu/scratch.h"
#include "ops/working_memory.h"

namespace teratron {

// Rows of unit stride, `stride` elements apart.
template <class T>
struct HeadMatrix {
  T* data;
  std::int64_t stride;
  T* row(std::int64_t i) const { return data + i * stride; }
};

// The [S, D] matrix of one head of a [B, S, H, D] view.
template <class T>
HeadMatrix<T> head_of(const TensorRef& view, std::int64_t b, std::int64_t h) {
  return {view.as<T>() + b * view.stride(0) + h * view.stride(2), view.stride(1)};
}

// One head of a call, without padding: n tokens of text are computed as a call of the first n - context queries on the
// first n keys. Queries and keys are numbered within the call.
//
// Query i sees keys [first_key(i), keys_seen(i)), and key j is seen by queries [first_query(j), end_query(j)): neither
// bound ever falls with i.
struct AttentionHead {
  const AttentionForward& args;
  std::int64_t b, h;
  std::int64_t key_head = h / args.heads_per_key_head();
  std::int64_t head_size = args.q.dim(3);
  std::int64_t context = args.k.dim(1) - args.q.dim(1);  // keys before the first query's own
  std::int64_t queries = text_queries();
  std::int64_t keys = queries > 0 ? context + queries : 0;
  // First keys of the head's queries, or null.
  const std::int32_t* first_keys = args.first_keys ? args.first_keys.as<std::int32_t>() + b * args.q.dim(1) : nullptr;
  float* log_sum_exp = args.log_sum_exp.as<float>() + (b * args.q.dim(2) + h) * args.q.dim(1);

  std::int64_t text_queries() const {
    if (!args.lengths) return args.q.dim(1);
    return std::clamp(args.lengths.as<const std::int32_t>()[b] - context, std::int64_t{0}, args.q.dim(1));
  }

  // exp(scale * score) = 2^(binary_scale() * score): both passes take powers of two.
  float binary_scale() const { return static_cast<float>(args.scale * std::numbers::log2e); }

  std::int64_t first_key(std::int64_t i) const { return first_keys == nullptr ? 0 : first_keys[i]; }
  std::int64_t keys_seen(std::int64_t i) const { return args.causal ? context + i + 1 : keys; }
  std::int64_t first_query(std::int64_t j) const {
    return args.causal ? std::max(std::int64_t{0}, j - context) : std::int64_t{0};
  }
  std::int64_t end_query(std::int64_t j) const {
    if (first_keys == nullptr) return queries;
    return std::upper_bound(first_keys, first_keys + queries, j) - first_keys;
  }

  // Index of (query i, key j) in the whole tensor of probabilities, for which its dropout mask is drawn.
  std::int64_t element(std::int64_t i, std::int64_t j) const {
    const Dropout& dropout = args.dropout;
    const std::int64_t head = (dropout.first_sample + b) * dropout.heads + dropout.first_head + h;
    const std::int64_t query = dropout.first_position + i, key = dropout.first_position - context + j;
    return (head * dropout.sequence_length + query) * dropout.key_stride() + key;
  }
};

// Zeros in rows [begin, end), which are padding.
template <class T>
void clear_rows(const HeadMatrix<T>& rows, std::int64_t begin, std::int64_t end, std::int64_t size) {
  for (std::int64_t i = begin; i < end; ++i) std::fill_n(rows.row(i), size, T{});
}

// Upper bound of a thread's scratch memory for a head of at most so many queries and keys.
void include_attention_forward(const WorkShapes::Attention& head, DType dtype, bool bf16_products, ScratchSizes& sizes);
void include_attention_backward(const WorkShapes::Attention& head, DType dtype, bool bf16_products,
                                ScratchSizes& sizes);

// The forward pass over one head, for one storage type.
struct AttentionKernels {
  void (*attend)(const AttentionHead& head, std::int64_t begin, std::int64_t end);  // queries [begin, end)
  void (*attend_one_by_one)(const AttentionHead& head);
  void (*clear)(const AttentionHead& head, std::int64_t begin, std::int64_t end);  // padded queries [begin, end)
  ScratchSizes (*scratch)(const WorkShapes::Attention& head);
};

}  // namespace teratron
