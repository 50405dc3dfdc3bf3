// That cuDNN, real or emulated, computes attention where CudaOptions asks for it: the other tests would not notice if
// our own kernels did.
#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/trials/operations.h"

namespace teratron::testing {
namespace {

class CudnnAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      make_cuda_backend({.compute_dtype = DType::kF16, .cudnn_attention = true});
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

using Run = std::map<std::string, std::vector<std::byte>>;

// The bytes that a trial of attention leaves, with an aligned place for each view.
Run bytes_of(Trial (*make)(Random&), std::uint64_t seed, bool cudnn) {
  const auto backend = make_cuda_backend({.compute_dtype = DType::kBF16, .cudnn_attention = cudnn});
  Random random(seed);
  return execute(make(random), *backend, 0, DType::kBF16).memory;
}

// Two ways to compute the same round differently somewhere.
int runs_that_differ(Trial (*make)(Random&)) {
  int differing = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    differing += bytes_of(make, seed, true) != bytes_of(make, seed, false);
  return differing;
}

TEST_F(CudnnAttention, ComputesForwardPassesWhereAskedFor) {
  EXPECT_GT(runs_that_differ(plain_attention_forward_trial), 5);
}

TEST_F(CudnnAttention, ComputesBackwardPassesWhereAskedFor) {
  EXPECT_GT(runs_that_differ(plain_attention_backward_trial), 5);
}

// One sequence's packed projection, seen by calls that differ in one thing each.
struct Sequence {
  static constexpr std::int64_t kBatch = 2, kTokens = 40, kHeads = 2, kHeadSize = 16;
  Backend& backend;
  Tensor qkv;

  explicit Sequence(Backend& owner) : backend(owner) {
    const Shape packed{kBatch, kTokens, 3, kHeads, kHeadSize};
    qkv = make_tensor(backend, packed, Random(3).normals(packed));
  }

  struct Call {
    std::int64_t queries = 16, keys = 24, part_of_values = 2;
    bool causal = true;
    double scale = 0.25;
  };
  Values attend(const Call& call) const {
    const Tensor out = make_poisoned(backend, {kBatch, call.queries, kHeads, kHeadSize});
    const Tensor sums = make_poisoned(backend, DType::kF32, {kBatch, kHeads, call.queries});
    const TensorRef all = qkv;
    backend.attention_forward({.out = out,
                               .log_sum_exp = sums,
                               .q = all.select(2, 0).slice(1, 0, call.queries),
                               .k = all.select(2, 1).slice(1, 0, call.keys),
                               .v = all.select(2, static_cast<int>(call.part_of_values)).slice(1, 0, call.keys),
                               .causal = call.causal,
                               .scale = call.scale});
    return download_values(backend, out);
  }
};

std::unique_ptr<Backend> with_cudnn() {
  return make_cuda_backend({.compute_dtype = DType::kBF16, .cudnn_attention = true});
}

// What was planned for one call must not be used for another.
TEST_F(CudnnAttention, PlansForEachCallApart) {
  const auto backend = with_cudnn();
  const Sequence sequence(*backend);
  const std::vector<Sequence::Call> calls = {
      {}, {.queries = 8}, {.keys = 32}, {.part_of_values = 0}, {.causal = false}, {.scale = 0.125}, {}};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto other = with_cudnn();
    EXPECT_EQ(sequence.attend(calls[i]), Sequence(*other).attend(calls[i])) << "call " << i;
  }
}

// Dropout, sums in fp32 and the like are our own kernels': then the bits are theirs.
TEST_F(CudnnAttention, LeavesFp32ToOurKernels) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const auto with = make_cuda_backend({.cudnn_attention = true}), without = make_cuda_backend();
    Random random(seed);
    const Trial trial = plain_attention_backward_trial(random);
    EXPECT_EQ(execute(trial, *with, 0, DType::kF32).memory, execute(trial, *without, 0, DType::kF32).memory);
  }
}

}  // namespace
}  // namespace teratron::testing
