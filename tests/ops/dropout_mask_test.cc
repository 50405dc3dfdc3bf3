// Dropout's promise: whether an element is kept depends on its place in the whole tensor alone, so it is the same in
// every back end, every operation, and however the batch, the tokens or the heads are divided.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/back_ends.h"
#include "ops/trials/host.h"
#include "ops/trials/trial.h"

namespace teratron::testing {
namespace {

constexpr std::int64_t kBatch = 3, kTokens = 21, kHidden = 13, kHeads = 3;
using Mask = std::vector<bool>;  // true: kept

Values constant(const Shape& shape, double value) { return Values(static_cast<std::size_t>(shape.elements()), value); }

Mask mask_of(const Values& values) {
  Mask mask;
  for (const double value : values) mask.push_back(value != 0);
  return mask;
}

Dropout drops(double probability, RandomPurpose purpose = RandomPurpose::kResidualDropout) {
  return {.probability = probability,
          .random = {.seed = 0x123456789ABCDEF, .purpose = purpose, .stream = 9, .step = 77},
          .sequence_length = kTokens,
          .heads = kHeads};
}

// The definition, written down a second time and naively: lane e % 8 of block e / 8 against p * 2^16.
bool is_kept(const Dropout& dropout, std::int64_t e) {
  const PhiloxCounter words = dropout.random.bits(static_cast<std::uint64_t>(e) / 8);
  std::vector<std::uint32_t> lanes;
  for (const std::uint32_t word : words) {
    lanes.push_back(word % 65536);
    lanes.push_back(word / 65536);
  }
  return lanes[static_cast<std::size_t>(e % 8)] >= std::round(dropout.probability * 65536);
}

// sum = 0 + dropout(1), for samples and tokens of the whole that begin at the dropout's place.
Values residual_values(Backend& backend, const Dropout& dropout, std::int64_t samples, std::int64_t tokens,
                       std::int64_t hidden = kHidden) {
  const Shape shape{samples, tokens, hidden};
  const Tensor sum = make_tensor(backend, shape, constant(shape, 0));
  backend.residual_add(
      {.sum = sum, .residual = sum, .branch = make_tensor(backend, shape, constant(shape, 1)), .dropout = dropout});
  return download_values(backend, sum);
}

Values dropout_backward_values(Backend& backend, const Dropout& dropout) {
  const Shape shape{kBatch, kTokens, kHidden};
  const Tensor ones = make_tensor(backend, shape, constant(shape, 1));
  backend.dropout_backward({.dbranch = ones, .dsum = ones, .dropout = dropout});
  return download_values(backend, ones);
}

// A norm's gradient that is 0 leaves the dx that is there.
Values norm_backward_values(Backend& backend, const Dropout& dropout) {
  const Shape shape{kBatch, kTokens, kHidden};
  const DType kept = backend.accumulation_dtype();
  const Tensor dx = make_tensor(backend, shape, constant(shape, 1)), dbranch = make_poisoned(backend, shape);
  backend.residual_add_norm_backward(
      {.norm = {.dx = dx,
                .dy = make_tensor(backend, shape, constant(shape, 0)),
                .x = make_tensor(backend, shape, constant(shape, 1)),
                .rstd = make_tensor(backend, kept, {kBatch * kTokens}, constant({kBatch * kTokens}, 1)),
                .gamma = make_tensor(backend, {kHidden}, constant({kHidden}, 1)),
                .accumulate_dx = true},
       .add = {.dbranch = dbranch, .dsum = dx, .dropout = dropout}});
  return download_values(backend, dbranch);
}

Values embedding_values(Backend& backend, const Dropout& dropout) {
  const Shape shape{kBatch, kTokens, kHidden}, table{kTokens, kHidden};
  const Tensor y = make_poisoned(backend, shape);
  backend.embedding_forward({.y = y,
                             .ids = make_ids(backend, {kBatch, kTokens}, constant({kBatch, kTokens}, 0)),
                             .tokens = make_tensor(backend, {1, kHidden}, constant({1, kHidden}, 0.5)),
                             .positions = make_tensor(backend, table, constant(table, 0.5)),
                             .dropout = dropout});
  return download_values(backend, y);
}

// With an id of its own for each token, a row of dtokens is that token's masked gradient.
Values embedding_gradient_values(Backend& backend, const Dropout& dropout) {
  const Shape shape{kBatch, kTokens, kHidden};
  Values ids;
  for (std::int64_t row = 0; row < kBatch * kTokens; ++row) ids.push_back(static_cast<double>(row));
  const Tensor dtokens = make_poisoned(backend, backend.accumulation_dtype(), {kBatch * kTokens, kHidden});
  backend.embedding_backward({.dtokens = dtokens,
                              .dpositions = make_poisoned(backend, backend.accumulation_dtype(), {kTokens, kHidden}),
                              .dy = make_tensor(backend, shape, constant(shape, 1)),
                              .ids = make_ids(backend, {kBatch, kTokens}, ids),
                              .dropout = dropout});
  return download_values(backend, dtokens);
}

// Values that are the identity make the output of query i, element k, the dropped probability of key k. All scores
// are 0, so every probability is positive. -> [samples, tokens, heads, keys]
Values attention_values(Backend& backend, const Dropout& dropout, std::int64_t samples, std::int64_t queries,
                        std::int64_t heads, std::int64_t keys = kTokens) {
  const Shape query_shape{samples, queries, heads, keys}, key_shape{samples, keys, heads, keys};
  Values identity = constant(key_shape, 0);
  for (std::size_t e = 0; e < identity.size(); ++e) {
    const auto place = static_cast<std::int64_t>(e);
    identity[e] = place % keys == place / (keys * heads) % keys ? 1 : 0;
  }
  const Tensor out = make_poisoned(backend, query_shape),
               log_sum_exp = make_poisoned(backend, backend.accumulation_dtype(), {samples, heads, queries});
  backend.attention_forward({.out = out,
                             .log_sum_exp = log_sum_exp,
                             .q = make_tensor(backend, query_shape, constant(query_shape, 0)),
                             .k = make_tensor(backend, key_shape, constant(key_shape, 0)),
                             .v = make_tensor(backend, key_shape, identity),
                             .causal = false,
                             .scale = 1,
                             .dropout = dropout});
  return download_values(backend, out);
}

class DropoutMask : public ::testing::TestWithParam<BackEnd> {
 protected:
  std::unique_ptr<Backend> backend_ = GetParam().make();
};

TEST_P(DropoutMask, EveryOperationDropsTheActivationsOfTheDefinition) {
  const Dropout dropout = drops(0.3);
  Mask expected;
  for (std::int64_t e = 0; e < kBatch * kTokens * kHidden; ++e) expected.push_back(is_kept(dropout, e));
  EXPECT_EQ(mask_of(residual_values(*backend_, dropout, kBatch, kTokens)), expected);
  EXPECT_EQ(mask_of(dropout_backward_values(*backend_, dropout)), expected);
  EXPECT_EQ(mask_of(norm_backward_values(*backend_, dropout)), expected);
  EXPECT_EQ(mask_of(embedding_values(*backend_, dropout)), expected);
  EXPECT_EQ(mask_of(embedding_gradient_values(*backend_, dropout)), expected);
}

TEST_P(DropoutMask, AttentionDropsTheProbabilitiesOfTheDefinition) {
  const Dropout dropout = drops(0.3, RandomPurpose::kAttentionDropout);
  const std::int64_t row_stride = 24;  // 21 tokens, rounded up to a multiple of 8
  Mask expected;
  for (std::int64_t b = 0; b < kBatch; ++b) {
    for (std::int64_t query = 0; query < kTokens; ++query) {
      for (std::int64_t h = 0; h < kHeads; ++h) {
        for (std::int64_t key = 0; key < kTokens; ++key) {
          expected.push_back(is_kept(dropout, ((b * kHeads + h) * kTokens + query) * row_stride + key));
        }
      }
    }
  }
  EXPECT_EQ(mask_of(attention_values(*backend_, dropout, kBatch, kTokens, kHeads)), expected);
}

// Queries at positions 9 to 12 on keys at positions 6 to 12: a window that does not begin with the sequence.
TEST_P(DropoutMask, AttentionCountsKeysFromTheirPlaceInTheSequence) {
  Dropout dropout = drops(0.3, RandomPurpose::kAttentionDropout);
  dropout.first_position = 9;
  const std::int64_t row_stride = 24;
  Mask expected;
  for (std::int64_t query = 9; query < 13; ++query) {
    for (std::int64_t key = 6; key < 13; ++key) expected.push_back(is_kept(dropout, query * row_stride + key));
  }
  EXPECT_EQ(mask_of(attention_values(*backend_, dropout, 1, 4, 1, 7)), expected);
}

TEST_P(DropoutMask, ActivationsDoNotDependOnHowBatchAndTokensAreDivided) {
  Dropout dropout = drops(0.3);
  const Values whole = residual_values(*backend_, dropout, kBatch, kTokens);
  for (std::int64_t b = 0; b < kBatch; ++b) {
    for (std::int64_t begin = 0; begin < kTokens; begin += 5) {
      const std::int64_t tokens = std::min<std::int64_t>(5, kTokens - begin);
      dropout.first_sample = b;
      dropout.first_position = begin;
      const auto row = whole.begin() + (b * kTokens + begin) * kHidden;
      EXPECT_EQ(residual_values(*backend_, dropout, 1, tokens), Values(row, row + tokens * kHidden));
    }
  }
}

TEST_P(DropoutMask, AttentionDoesNotDependOnHowBatchHeadsAndQueriesAreDivided) {
  Dropout dropout = drops(0.3, RandomPurpose::kAttentionDropout);
  const Mask whole = mask_of(attention_values(*backend_, dropout, kBatch, kTokens, kHeads));
  for (std::int64_t b = 0; b < kBatch; ++b) {
    for (std::int64_t h = 0; h < kHeads; ++h) {
      for (const std::int64_t begin : {0, 6, 20}) {
        dropout.first_sample = b;
        dropout.first_head = h;
        dropout.first_position = begin;
        const std::int64_t keys = kTokens;  // all of them: the queries are the last ones
        const Mask part = mask_of(attention_values(*backend_, dropout, 1, kTokens - begin, 1));
        for (std::size_t e = 0; e < part.size(); ++e) {
          const auto place = static_cast<std::int64_t>(e);
          const std::int64_t query = begin + place / keys, key = place % keys;
          const auto of_whole = static_cast<std::size_t>(((b * kTokens + query) * kHeads + h) * keys + key);
          ASSERT_EQ(part[e], whole[of_whole])
              << "sample " << b << " head " << h << " query " << query << " key " << key;
        }
      }
    }
  }
}

// dv = (dropped probabilities)^T dout: with dout the identity, element [key, query] is that probability.
TEST_P(DropoutMask, AttentionHasTheSameMaskInTheBackwardPass) {
  Dropout dropout = drops(0.3, RandomPurpose::kAttentionDropout);
  const Mask forward = mask_of(attention_values(*backend_, dropout, 1, kTokens, 1));
  const Shape shape{1, kTokens, 1, kTokens};
  Values identity = constant(shape, 0);
  for (std::int64_t i = 0; i < kTokens; ++i) identity[static_cast<std::size_t>(i * kTokens + i)] = 1;
  const Tensor zero = make_tensor(*backend_, shape, constant(shape, 0)), v = make_tensor(*backend_, shape, identity);
  const Tensor out = make_poisoned(*backend_, shape),
               log_sum_exp = make_poisoned(*backend_, backend_->accumulation_dtype(), {1, 1, kTokens});
  const Tensor dq = make_poisoned(*backend_, shape), dk = make_poisoned(*backend_, shape);
  const Tensor dv = make_poisoned(*backend_, shape), dout = make_tensor(*backend_, shape, identity);
  const AttentionForward args{.out = out,
                              .log_sum_exp = log_sum_exp,
                              .q = zero,
                              .k = zero,
                              .v = v,
                              .causal = false,
                              .scale = 1,
                              .dropout = dropout};
  backend_->attention_forward(args);
  backend_->attention_backward({.dq = dq, .dk = dk, .dv = dv, .dout = dout, .forward = args});
  const Mask backward = mask_of(download_values(*backend_, dv));
  for (std::size_t query = 0; query < kTokens; ++query) {
    for (std::size_t key = 0; key < kTokens; ++key) {
      ASSERT_EQ(backward[key * kTokens + query], forward[query * kTokens + key]) << "query " << query << " key " << key;
    }
  }
}

TEST_P(DropoutMask, KeepsTheShareItPromisesAndTheExpectation) {
  const std::int64_t hidden = 1000;
  const double count = kBatch * kTokens * hidden;
  for (const double probability : {0.1, 0.5, 0.9}) {
    const Values values = residual_values(*backend_, drops(probability), kBatch, kTokens, hidden);
    double kept = 0;
    for (const double value : values) {
      kept += value != 0 ? 1 : 0;
      // scale() makes up for the probability as rounded to 1/65536; what is stored is rounded.
      const double allowed = 1e-3 + rounding_of(backend_->compute_dtype()).relative;
      ASSERT_TRUE(value == 0 || std::abs(value * (1 - probability) - 1) < allowed) << value;
    }
    const double deviation = std::sqrt(count * probability * (1 - probability));
    EXPECT_NEAR(kept, count * (1 - probability), 5 * deviation) << "p = " << probability;
  }
}

TEST_P(DropoutMask, IsAnotherOneForEveryStepAndStream) {
  Dropout dropout = drops(0.5);
  const Mask first = mask_of(residual_values(*backend_, dropout, kBatch, kTokens));
  dropout.random.step += 1;
  const Mask next_step = mask_of(residual_values(*backend_, dropout, kBatch, kTokens));
  dropout.random.stream += 1;
  const Mask next_stream = mask_of(residual_values(*backend_, dropout, kBatch, kTokens));
  EXPECT_NE(first, next_step);
  EXPECT_NE(next_step, next_stream);
}

INSTANTIATE_TEST_SUITE_P(Every, DropoutMask, ::testing::ValuesIn(back_ends()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace teratron::testing
