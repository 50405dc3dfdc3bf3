// Attention by the kernels for Hopper (--hopper-attention), where there is such a device: a real one, or the emulated
// one where kernels run by their PTX (emulated_gpu/ptx/README.md).
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "ops/trials/agreement.h"
#include "ops/trials/operations.h"

namespace teratron::testing {
namespace {

// Null: there is none.
std::unique_ptr<Backend> hopper(DType dtype) {
  try {
    auto backend = make_cuda_backend({.compute_dtype = dtype, .hopper_attention = KernelUse::kRequired});
    const bool by_fibers = backend->processor() == "emulated" && std::getenv("TERATRON_PTX") == nullptr;
    return by_fibers ? nullptr : std::move(backend);
  } catch (const EnvironmentError&) {
    return nullptr;
  }
}

void expect_agreement(Backend& backend, const Trial& trial, std::int64_t offset = 0) {
  const auto reference = make_reference_backend(DType::kF64);
  const DType compute = backend.compute_dtype();
  const Outcome actual = execute(trial, backend, offset, compute), expected = execute(trial, *reference, 0, compute);
  EXPECT_EQ(disagreement(trial, actual, expected, compute, true), "") << trial.sizes << ", offset " << offset;
}

struct Case {
  DType dtype;
  MatrixAttention asked;
};

std::string name_of_case(const Case& tested) {
  const MatrixAttention& asked = tested.asked;
  const char* const mask = !asked.dropout ? "" : asked.aligned ? "_dropout" : "_dropout_unaligned";
  return fmt::format("{}_heads_of_{}{}{}{}", name_of(tested.dtype), asked.head_size, asked.causal ? "_causal" : "",
                     asked.context ? "_context" : "", mask);
}

void PrintTo(const Case& tested, std::ostream* out) { *out << name_of_case(tested); }

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::int64_t head_size : {64, 96, 128}) {
    for (const bool causal : {false, true}) {
      for (const bool context : {false, true}) {
        const DType dtype = causal == context ? DType::kBF16 : DType::kF16;
        cases.push_back({dtype, {head_size, causal, context, false, true}});
        cases.push_back({dtype, {head_size, causal, context, true, causal}});
      }
    }
  }
  return cases;
}

class HopperAttention : public ::testing::TestWithParam<Case> {};

TEST_P(HopperAttention, AgreesWithTheReferenceInDouble) {
  const auto backend = hopper(GetParam().dtype);
  if (backend == nullptr) GTEST_SKIP() << "there is no device of compute capability 9.0";
  Random random(1);
  expect_agreement(*backend, hopper_attention_trial(random, GetParam().asked));
}

INSTANTIATE_TEST_SUITE_P(Every, HopperAttention, ::testing::ValuesIn(all_cases()),
                         [](const auto& tested) { return name_of_case(tested.param); });

// Padding, documents, shared key heads, strides, heads of other sizes, whatever the trials come to.
TEST(HopperAttentionTrials, AgreeWithTheReferenceInDouble) {
  const char* const asked = std::getenv("TERATRON_TRIALS");
  const int trials = asked == nullptr ? 30 : std::max(1, std::atoi(asked)) * 2;
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const auto backend = hopper(dtype);
    if (backend == nullptr) GTEST_SKIP() << "there is no device of compute capability 9.0";
    Random random(7);
    for (int i = 0; i < trials && !HasFailure(); ++i) {
      expect_agreement(*backend, hopper_attention_trial(random), 8 * random.below(2));
    }
  }
}

TEST(HopperAttentionTrials, GiveTheSameBitsAgain) {
  const auto backend = hopper(DType::kBF16);
  if (backend == nullptr) GTEST_SKIP() << "there is no device of compute capability 9.0";
  Random random(3);
  const Trial trial = hopper_attention_trial(random, {.head_size = 96, .causal = true, .dropout = true});
  const Outcome first = execute(trial, *backend, 0, DType::kBF16), again = execute(trial, *backend, 0, DType::kBF16);
  for (const Argument& argument : trial.arguments) {
    EXPECT_TRUE(first.memory.at(argument.name) == again.memory.at(argument.name)) << argument.name;
  }
}

TEST(HopperAttentionTrials, AreRefusedWithTheirShapeWhereTheKernelsTakeNone) {
  const auto backend = hopper(DType::kBF16);
  if (backend == nullptr) GTEST_SKIP() << "there is no device of compute capability 9.0";
  Random random(1);
  const Trial trial = hopper_attention_trial(random, {.head_size = 20});
  EXPECT_THAT([&] { execute(trial, *backend, 0, DType::kBF16); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("these are of 20 in bf16; use auto")));
}

}  // namespace
}  // namespace teratron::testing
