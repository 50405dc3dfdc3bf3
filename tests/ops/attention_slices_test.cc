// Token slices (TeraPipe, arXiv 2102.07988, section 3): attention over slices with a key/value cache is the attention
// over the whole sequence, and its backward pass over the slices, last to first, the backward pass of the whole.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/back_ends.h"
#include "ops/trials/trial.h"

namespace teratron::testing {
namespace {

constexpr std::int64_t kBatch = 2, kLength = 37, kHeads = 2, kHeadSize = 8;
constexpr bool kCausal = true;

// One sequence's tensors; q, k and v are parts of a packed projection. The gradients of k and v are sums over slices,
// in the accumulation type.
struct Sequence {
  Tensor qkv, dq, dkv, out, dout, log_sum_exp;

  explicit Sequence(Backend& backend) {
    Random random(7);
    const Shape packed{kBatch, kLength, 3, kHeads, kHeadSize}, plain{kBatch, kLength, kHeads, kHeadSize};
    qkv = make_tensor(backend, packed, random.normals(packed));
    dout = make_tensor(backend, plain, random.normals(plain));
    dq = make_poisoned(backend, plain);
    dkv = make_poisoned(backend, backend.accumulation_dtype(), {kBatch, kLength, 2, kHeads, kHeadSize});
    out = make_poisoned(backend, plain);
    log_sum_exp = make_poisoned(backend, backend.accumulation_dtype(), {kBatch, kHeads, kLength});
  }
};

// The attention of the queries [begin, end) on the keys [0, end).
AttentionForward slice_of(const Sequence& sequence, const TensorRef& log_sum_exp, std::int64_t begin, std::int64_t end,
                          double dropout) {
  const TensorRef qkv = sequence.qkv;
  return {.out = sequence.out.ref().slice(1, begin, end),
          .log_sum_exp = log_sum_exp,
          .q = qkv.select(2, 0).slice(1, begin, end),
          .k = qkv.select(2, 1).slice(1, 0, end),
          .v = qkv.select(2, 2).slice(1, 0, end),
          .causal = kCausal,
          .scale = 1 / std::sqrt(static_cast<double>(kHeadSize)),
          .dropout = {.probability = dropout,
                      .random = {.seed = 5, .purpose = RandomPurpose::kAttentionDropout},
                      .sequence_length = kLength,
                      .first_position = begin,
                      .heads = kHeads}};
}

AttentionBackward backward_of(const Sequence& sequence, const AttentionForward& forward, std::int64_t begin,
                              std::int64_t end) {
  const TensorRef dkv = sequence.dkv;
  return {.dq = sequence.dq.ref().slice(1, begin, end),
          .dk = dkv.select(2, 0).slice(1, 0, end),
          .dv = dkv.select(2, 1).slice(1, 0, end),
          .dout = sequence.dout.ref().slice(1, begin, end),
          .forward = forward,
          .accumulate_kv = true};
}

// Values are about 1, at most 4. A 16-bit `out` may round the other way, which dq and dk then carry.
void expect_same(Backend& backend, const Tensor& sliced, const Tensor& whole, const char* what) {
  const double tolerance = sum_tolerance(kLength, 32, 1).relative + 8 * rounding_of(backend.compute_dtype()).relative;
  const Values actual = download_values(backend, sliced), expected = download_values(backend, whole);
  for (std::size_t e = 0; e < actual.size(); ++e) ASSERT_NEAR(actual[e], expected[e], tolerance) << what << " " << e;
}

class AttentionSlices : public ::testing::TestWithParam<BackEnd> {
 protected:
  void expect_slices_to_equal_the_whole(double dropout);
};

void AttentionSlices::expect_slices_to_equal_the_whole(double dropout) {
  const auto backend = GetParam().make();
  const Sequence whole(*backend), sliced(*backend);
  const AttentionForward forward = slice_of(whole, whole.log_sum_exp, 0, kLength, dropout);
  backend->attention_forward(forward);
  backend->fill_zero(whole.dkv);
  backend->attention_backward(backward_of(whole, forward, 0, kLength));

  const std::vector<std::int64_t> ends = {1, 2, 16, 20, kLength};
  std::vector<Tensor> statistics;
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    statistics.push_back(make_poisoned(*backend, backend->accumulation_dtype(), {kBatch, kHeads, end - begin}));
    backend->attention_forward(slice_of(sliced, statistics.back(), begin, end, dropout));
    begin = end;
  }
  backend->fill_zero(sliced.dkv);
  for (std::size_t slice = ends.size(); slice-- > 0;) {
    begin = slice == 0 ? 0 : ends[slice - 1];
    const AttentionForward part = slice_of(sliced, statistics[slice], begin, ends[slice], dropout);
    backend->attention_backward(backward_of(sliced, part, begin, ends[slice]));
  }
  expect_same(*backend, sliced.out, whole.out, "out");
  expect_same(*backend, sliced.dq, whole.dq, "dq");
  expect_same(*backend, sliced.dkv, whole.dkv, "dkv");
}

TEST_P(AttentionSlices, EqualTheWholeSequenceForwardAndBackward) { expect_slices_to_equal_the_whole(0.3); }

// Where a library may compute the forward pass, and then the sums over slices are ours.
TEST_P(AttentionSlices, EqualItWithoutDropoutToo) { expect_slices_to_equal_the_whole(0); }

INSTANTIATE_TEST_SUITE_P(Every, AttentionSlices, ::testing::ValuesIn(back_ends()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace teratron::testing
