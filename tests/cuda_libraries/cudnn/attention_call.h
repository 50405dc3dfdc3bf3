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
  bool causal = true, packed = true;
  double scale = 0.125;

  static AttentionCall random(Random& random) {
    AttentionCall call = {.dtype = random.one_of({DType::kBF16, DType::kF16}),
                          .batch = 1 + random.below(3),
                          .queries = 2 + random.below(random.coin() ? 62 : 300),
                          .heads = 1 + random.below(4),
                          .head_size = 8 * (1 + random.below(16)),
                          .causal = random.coin(),
                          .packed = random.coin(),
                          .scale = 1.0 / static_cast<double>(1 + random.below(16))};
    call.keys = call.queries + (random.coin() ? 0 : random.below(200));
    return call;
  }

  std::string text() const {
    return fmt::format("{} B={} S_q={} S_k={} H={} D={} causal={} packed={}", name_of(dtype), batch, queries, keys,
                       heads, head_size, causal, packed);
  }

  TensorRef plain(std::int64_t rows) const { return {memory, dtype, {batch, rows, heads, head_size}}; }
  // Part 0, 1 or 2 of the packed projection of as many tokens as there are keys: rows [begin, end) of it.
  TensorRef part(int number, std::int64_t begin, std::int64_t end) const {
    if (!packed) return plain(end - begin);
    return TensorRef(memory, dtype, {batch, keys, 3, heads, head_size}).select(2, number).slice(1, begin, end);
  }

  AttentionForward forward() const {
    return {.out = plain(queries),
            .log_sum_exp = {memory, DType::kF32, {batch, heads, queries}},
            .q = part(0, keys - queries, keys),
            .k = part(1, 0, keys),
            .v = part(2, 0, keys),
            .causal = causal,
            .scale = scale};
  }

  AttentionBackward backward() const {
    return {.dq = part(0, keys - queries, keys),
            .dk = part(1, 0, keys),
            .dv = part(2, 0, keys),
            .dout = plain(queries),
            .forward = forward()};
  }

  alignas(256) static inline char memory[256] = {};
};

}  // namespace teratron::testing
