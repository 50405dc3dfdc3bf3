// What the two directions of attention share: a head's matrices, and a tile of queries and keys.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/backend.h"

namespace teratron {

constexpr std::int64_t kQueryTile = 64, kKeyTile = 64;

// Rows of unit stride, `stride` elements apart.
struct MatrixRef {
  float* data;
  std::int64_t stride;
  MatrixRef from_row(std::int64_t row) const { return {data + row * stride, stride}; }
};

// The [S, D] matrix of one head of a [B, S, H, D] view.
inline MatrixRef head_of(const TensorRef& view, std::int64_t b, std::int64_t h) {
  return {view.as<float>() + b * view.stride(0) + h * view.stride(2), view.stride(1)};
}

// One head's queries [first_query, first_query + queries) and keys [first_key, first_key + keys), counted from the
// first of the call's.
struct AttentionTile {
  std::int64_t b, h;
  std::int64_t first_query, queries, first_key, keys;

  // How many of the tile's keys its query i sees: always the first ones.
  std::int64_t keys_seen(const AttentionForward& args, std::int64_t i) const {
    if (!args.causal) return keys;
    const std::int64_t context = args.k.dim(1) - args.q.dim(1);
    return std::clamp(context + first_query + i + 1 - first_key, std::int64_t{0}, keys);
  }
  bool is_hidden(const AttentionForward& args) const { return keys_seen(args, queries - 1) == 0; }
  // The number, in the whole tensor, of the probability of query i and the tile's first key.
  std::int64_t first_element(const AttentionForward& args, std::int64_t i) const {
    const Dropout& dropout = args.dropout;
    const std::int64_t context = args.k.dim(1) - args.q.dim(1);
    const std::int64_t head = (dropout.first_sample + b) * dropout.heads + dropout.first_head + h;
    const std::int64_t query = dropout.first_position + first_query + i;
    const std::int64_t key = dropout.first_position - context + first_key;
    return (head * dropout.sequence_length + query) * dropout.key_stride() + key;
  }
};

}  // namespace teratron
