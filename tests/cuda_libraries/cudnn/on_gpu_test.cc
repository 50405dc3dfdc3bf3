// That cuDNN computes attention on a GPU where CudaOptions asks for it: the tests of operations would not notice if our
// own kernels did. They compare what it computes with the reference.
#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/trials/operations.h"

namespace teratron::testing {
namespace {

std::unique_ptr<Backend> make_backend(bool cudnn) {
  return make_cuda_backend(
      {.compute_dtype = DType::kBF16, .cudnn_attention = cudnn ? KernelUse::kRequired : KernelUse::kOff});
}

class CudnnAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      make_backend(true);
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

// One sequence's packed projection, seen by calls that differ in one thing each.
class Sequence {
 public:
  struct Call {
    std::int64_t queries = 256, keys = 256, part_of_values = 2;
    bool causal = true;
    double scale = 0.125;
  };

  explicit Sequence(Backend& backend) : backend_(backend) {
    const Shape packed{kBatch, kTokens, 3, kHeads, kHeadSize};
    qkv_ = make_tensor(backend, packed, Random(3).normals(packed));
  }

  Values attend(const Call& call) const {
    const Results results(backend_, call);
    backend_.attention_forward(forward(call, results));
    return download_values(backend_, results.out);
  }

  Values gradient_of_queries(const Call& call) const {
    const Results results(backend_, call);
    backend_.attention_forward(forward(call, results));
    const Shape queries{kBatch, call.queries, kHeads, kHeadSize}, keys{kBatch, call.keys, kHeads, kHeadSize};
    const Tensor dout = make_tensor(backend_, queries, Random(4).normals(queries)),
                 dq = make_poisoned(backend_, queries);
    const Tensor dk = make_poisoned(backend_, keys), dv = make_poisoned(backend_, keys);
    backend_.attention_backward({.dq = dq, .dk = dk, .dv = dv, .dout = dout, .forward = forward(call, results)});
    return download_values(backend_, dq);
  }

 private:
  // cuDNN has kernels for whole sequences of such sizes on every card that it supports (graphs_test.cc).
  static constexpr std::int64_t kBatch = 2, kTokens = 256, kHeads = 2, kHeadSize = 64;

  struct Results {
    Tensor out, log_sum_exp;
    Results(Backend& backend, const Call& call)
        : out(make_poisoned(backend, {kBatch, call.queries, kHeads, kHeadSize})),
          log_sum_exp(make_poisoned(backend, DType::kF32, {kBatch, kHeads, call.queries})) {}
  };

  AttentionForward forward(const Call& call, const Results& results) const {
    const TensorRef all = qkv_;
    return {.out = results.out,
            .log_sum_exp = results.log_sum_exp,
            .q = all.select(2, 0).slice(1, 0, call.queries),
            .k = all.select(2, 1).slice(1, 0, call.keys),
            .v = all.select(2, static_cast<int>(call.part_of_values)).slice(1, 0, call.keys),
            .causal = call.causal,
            .scale = call.scale};
  }

  Backend& backend_;
  Tensor qkv_;
};

// Two ways to compute the same round differently somewhere.
TEST_F(CudnnAttention, ComputesBothPassesWhereAskedFor) {
  const auto with = make_backend(true), without = make_backend(false);
  EXPECT_NE(Sequence(*with).attend({}), Sequence(*without).attend({}));
  EXPECT_NE(Sequence(*with).gradient_of_queries({}), Sequence(*without).gradient_of_queries({}));
}

// The parts of dQ come from several blocks, which must add them in an order of their own.
TEST_F(CudnnAttention, RepeatsBitByBit) {
  const auto backend = make_backend(true);
  const Sequence sequence(*backend);
  const Values once = sequence.gradient_of_queries({});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(sequence.gradient_of_queries({}), once);
}

// A plan for one call must not be used for another. Where cuDNN has no kernels, both are our own.
TEST_F(CudnnAttention, PlansForEachCallApart) {
  const auto backend = make_backend(true);
  const Sequence sequence(*backend);
  const std::vector<Sequence::Call> calls = {
      {}, {.queries = 64}, {.queries = 64, .keys = 128}, {.part_of_values = 0}, {.causal = false}, {.scale = 0.25}, {}};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto other = make_backend(true);
    EXPECT_EQ(sequence.attend(calls[i]), Sequence(*other).attend(calls[i])) << "call " << i;
  }
}

// Dropout, sums in fp32 and the like are our own kernels': then the bits are theirs.
TEST_F(CudnnAttention, LeavesFp32ToOurKernels) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const auto with = make_cuda_backend({.cudnn_attention = KernelUse::kRequired}), without = make_cuda_backend();
    Random random(seed);
    const Trial trial = plain_attention_backward_trial(random);
    EXPECT_EQ(execute(trial, *with, 0, DType::kF32).memory, execute(trial, *without, 0, DType::kF32).memory);
  }
}

}  // namespace
}  // namespace teratron::testing
