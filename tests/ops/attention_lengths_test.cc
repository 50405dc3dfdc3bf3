// Sequences of different lengths in one batch: attention with lengths gives each sequence the bits that it has alone,
// without padding.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/back_ends.h"
#include "ops/trials/trial.h"

namespace teratron::testing {
namespace {

// Nothing, one token, text that ends with the context, one query, a prime number, all.
constexpr std::array<std::int64_t, 6> kLengths = {0, 1, 40, 41, 97, 150};
constexpr std::int64_t kBatch = kLengths.size(), kTokens = 150, kHeads = 2, kHeadSize = 16;

struct Variant {
  std::int64_t context;  // the call is of the queries from this position on
  bool causal, accumulate;
};

// Tensors of a call: q, k and v are parts of one projection. Padded rows of it and of dout are NaN. Outputs start as
// `before`, except dkv, which starts as ones where it is added to.
struct Tensors {
  Tensor qkv, dout, out, dq, dkv, log_sum_exp;

  Tensors(Backend& backend, const Variant& variant, double before) {
    const Shape packed{kBatch, kTokens, 3, kHeads, kHeadSize}, plain{kBatch, kTokens, kHeads, kHeadSize};
    const Shape of_keys{kBatch, kTokens, 2, kHeads, kHeadSize}, rows{kBatch, kHeads, kTokens - variant.context};
    const DType sums = backend.accumulation_dtype();
    Random random(11);
    qkv = make_tensor(backend, packed, with_padding(random.normals(packed)));
    dout = make_tensor(backend, plain, with_padding(random.normals(plain)));
    out = make_tensor(backend, plain, all(plain, before));
    dq = make_tensor(backend, plain, all(plain, before));
    dkv = make_tensor(backend, sums, of_keys, all(of_keys, variant.accumulate ? 1 : before));
    log_sum_exp = make_tensor(backend, sums, rows, all(rows, before));
  }

 private:
  static Values all(const Shape& shape, double value) {
    return Values(static_cast<std::size_t>(shape.elements()), value);
  }

  static Values with_padding(Values values) {
    const std::int64_t row_size = static_cast<std::int64_t>(values.size()) / (kBatch * kTokens);
    for (std::size_t b = 0; b < kLengths.size(); ++b) {
      const auto sequence = values.begin() + static_cast<std::int64_t>(b) * kTokens * row_size;
      std::fill(sequence + kLengths[b] * row_size, sequence + kTokens * row_size, std::nan(""));
    }
    return values;
  }
};

// Sequences [first, last), as if they were `tokens` long. With dropout, which libraries leave to our kernels.
AttentionForward forward_of(const Tensors& tensors, const Variant& variant, const TensorRef& log_sum_exp,
                            std::int64_t first, std::int64_t last, std::int64_t tokens) {
  const TensorRef qkv = tensors.qkv.ref().slice(0, first, last).slice(1, 0, tokens);
  return {.out = tensors.out.ref().slice(0, first, last).slice(1, variant.context, tokens),
          .log_sum_exp = log_sum_exp,
          .q = qkv.select(2, 0).slice(1, variant.context, tokens),
          .k = qkv.select(2, 1),
          .v = qkv.select(2, 2),
          .causal = variant.causal,
          .scale = 1 / std::sqrt(static_cast<double>(kHeadSize)),
          .dropout = {.probability = 0.3,
                      .random = {.seed = 5, .purpose = RandomPurpose::kAttentionDropout},
                      .first_sample = first,
                      .sequence_length = kTokens,
                      .first_position = variant.context,
                      .heads = kHeads}};
}

void run_both_passes(Backend& backend, const Tensors& tensors, const Variant& variant, const AttentionForward& forward,
                     std::int64_t first) {
  const std::int64_t last = first + forward.q.dim(0), tokens = forward.k.dim(1);
  const TensorRef dkv = tensors.dkv.ref().slice(0, first, last).slice(1, 0, tokens);
  backend.attention_forward(forward);
  backend.attention_backward({.dq = tensors.dq.ref().slice(0, first, last).slice(1, variant.context, tokens),
                              .dk = dkv.select(2, 0),
                              .dv = dkv.select(2, 1),
                              .dout = tensors.dout.ref().slice(0, first, last).slice(1, variant.context, tokens),
                              .forward = forward,
                              .accumulate_kv = variant.accumulate});
}

// Sequence b alone; its statistics are copied to where the batch has them.
void run_alone(Backend& backend, const Tensors& tensors, const Variant& variant, std::int64_t b) {
  const std::int64_t length = kLengths[static_cast<std::size_t>(b)], queries = length - variant.context;
  if (queries <= 0) return;
  const Tensor log_sum_exp = make_poisoned(backend, backend.accumulation_dtype(), {1, kHeads, queries});
  run_both_passes(backend, tensors, variant, forward_of(tensors, variant, log_sum_exp, b, b + 1, length), b);
  backend.copy(tensors.log_sum_exp.ref().slice(0, b, b + 1).slice(2, 0, queries), log_sum_exp);
}

class AttentionLengths : public ::testing::TestWithParam<BackEnd> {};

TEST_P(AttentionLengths, GiveEachSequenceTheBitsItHasAlone) {
  const auto backend = GetParam().make();
  const Tensor lengths = make_ids(*backend, {kBatch}, Values(kLengths.begin(), kLengths.end()));
  for (const Variant& variant : {Variant{0, false, false}, {0, true, true}, {40, false, true}, {40, true, false}}) {
    SCOPED_TRACE(::testing::Message() << "context " << variant.context << ", causal " << variant.causal);
    // Rows that no query writes must become 0 in the batch. A batch's padded rows start as 7, to show that.
    const Tensors batch(*backend, variant, 7), alone(*backend, variant, 0);
    AttentionForward forward = forward_of(batch, variant, batch.log_sum_exp, 0, kBatch, kTokens);
    forward.lengths = lengths;
    run_both_passes(*backend, batch, variant, forward, 0);
    for (std::int64_t b = 0; b < kBatch; ++b) run_alone(*backend, alone, variant, b);

    const auto queries_of = [&](const Tensor& tensor) {
      return download_values(*backend, tensor.ref().slice(1, variant.context, kTokens));
    };
    EXPECT_EQ(queries_of(batch.out), queries_of(alone.out));
    EXPECT_EQ(download_values(*backend, batch.log_sum_exp), download_values(*backend, alone.log_sum_exp));
    EXPECT_EQ(queries_of(batch.dq), queries_of(alone.dq));
    EXPECT_EQ(download_values(*backend, batch.dkv), download_values(*backend, alone.dkv));
  }
}

INSTANTIATE_TEST_SUITE_P(Every, AttentionLengths, ::testing::ValuesIn(back_ends()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace teratron::testing
