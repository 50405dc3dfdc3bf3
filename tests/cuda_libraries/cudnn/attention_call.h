// Random calls of attention that cuDNN takes: sizes, and views of memory that is never touched.
#pragma once

#include <string>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/trials/host.h"

namespace teratron::testing {

struct AttentionCall {
  DType dtype = DType::kBF16;
  std::int64_t batch = 2, queries = 128, keys = 128, heads = 3, head_size = 64;
  std::int64_t heads_each = 1;  // query heads that read a key head
  bool causal = true, packed = true;
  double scale = 0.125;

  static AttentionCall random(Random& random) {
    AttentionCall call = {.dtype = random.one_of({DType::kBF16, DType::kF16}),
                          .batch = 1 + random.below(3),
                          .queries = 2 + random.below(random.coin() ? 62 : 300),
                          .heads = 1 + random.below(4),
                          .head_size = 8 * (1 + random.below(16)),
                          .heads_each = random.coin() ? 1 : 1 + random.below(4),
                          .causal = random.coin(),
                          .packed = random.coin(),
                          .scale = 1.0 / static_cast<double>(1 + random.below(16))};
    call.keys = call.queries + (random.coin() ? 0 : random.below(200));
    return call;
  }

  std::string text() const {
    return fmt::format("{} B={} S_q={} S_k={} H={}x{} D={} causal={} packed={}", name_of(dtype), batch, queries, keys,
                       heads, heads_each, head_size, causal, packed);
  }

  std::int64_t query_heads() const { return heads * heads_each; }
  TensorRef plain() const { return {memory, dtype, {batch, queries, query_heads(), head_size}}; }
  // The packed projection of as many tokens as there are keys: its queries, or part 1 or 2 of it, keys or values.
  TensorRef packed_part(std::int64_t first_head, std::int64_t count) const {
    return TensorRef(memory, dtype, {batch, keys, (heads_each + 2) * heads, head_size})
        .slice(2, first_head, first_head + count);
  }
  TensorRef query_part() const {
    return packed ? packed_part(0, query_heads()).slice(1, keys - queries, keys) : plain();
  }
  TensorRef key_part(int number) const {
    if (!packed) return {memory, dtype, {batch, keys, heads, head_size}};
    return packed_part((heads_each + number - 1) * heads, heads);
  }

  AttentionForward forward() const {
    return {.out = plain(),
            .log_sum_exp = {memory, DType::kF32, {batch, query_heads(), queries}},
            .q = query_part(),
            .k = key_part(1),
            .v = key_part(2),
            .causal = causal,
            .scale = scale};
  }

  AttentionBackward backward() const {
    return {.dq = query_part(), .dk = key_part(1), .dv = key_part(2), .dout = plain(), .forward = forward()};
  }

  alignas(256) static inline char memory[256] = {};
};

}  // namespace teratron::testing
