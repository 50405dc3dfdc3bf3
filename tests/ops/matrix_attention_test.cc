// Attention by tensor cores in each of the ways that its kernels are compiled or branch: random trials seldom come to
// the larger heads, whose kernels wait and divide their work differently.
#include <gtest/gtest.h>

#include "ops/back_ends.h"
#include "ops/trials/agreement.h"

namespace teratron::testing {
namespace {

struct Case {
  BackEnd back_end;
  MatrixAttention asked;
};

std::string name_of_case(const Case& tested) {
  const MatrixAttention& asked = tested.asked;
  const char* const mask = !asked.dropout ? "" : asked.aligned ? "_dropout" : "_dropout_unaligned";
  return fmt::format("{}_heads_of_{}{}{}{}", tested.back_end.name, asked.head_size, asked.causal ? "_causal" : "",
                     asked.context ? "_context" : "", mask);
}

void PrintTo(const Case& tested, std::ostream* out) { *out << name_of_case(tested); }

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const BackEnd& back_end : back_ends()) {
    if (!back_end.tensor_cores || back_end.operations != operations || !cases.empty()) continue;  // one 16-bit type
    for (const std::int64_t head_size : {64, 96, 128}) {
      for (const bool causal : {false, true}) {
        for (const bool context : {false, true}) {
          cases.push_back({back_end, {head_size, causal, context, false, true}});
          cases.push_back({back_end, {head_size, causal, context, true, true}});
          cases.push_back({back_end, {head_size, causal, context, true, false}});
        }
      }
    }
  }
  return cases;
}

class MatrixAttentions : public ::testing::TestWithParam<Case> {};

TEST_P(MatrixAttentions, AgreeWithTheReferenceInDouble) {
  const auto backend = GetParam().back_end.make(), reference = make_reference_backend(DType::kF64);
  Random random(1);
  const Trial trial = matrix_attention_trial(random, GetParam().asked);
  const DType compute = backend->compute_dtype();
  const Outcome actual = execute(trial, *backend, 0, compute), expected = execute(trial, *reference, 0, compute);
  EXPECT_EQ(disagreement(trial, actual, expected, compute, true), "") << trial.sizes;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MatrixAttentions);  // CPUs have none
INSTANTIATE_TEST_SUITE_P(Every, MatrixAttentions, ::testing::ValuesIn(all_cases()),
                         [](const auto& tested) { return name_of_case(tested.param); });

}  // namespace
}  // namespace teratron::testing
