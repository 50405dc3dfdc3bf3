// A layer norms its sum for the next one, which norms it itself where it begins a stage of a pipeline or is computed
// again: the bits must be the same.
#include <gtest/gtest.h>

#include "ops/back_ends.h"
#include "ops/trials/host.h"

namespace teratron::testing {
namespace {

class FusedNorm : public ::testing::TestWithParam<BackEnd> {};

TEST_P(FusedNorm, GivesTheBitsOfTheTwoOperationsOneAfterTheOther) {
  const std::unique_ptr<Backend> backend = GetParam().make();
  const DType kept = backend->accumulation_dtype();
  Random random(5);
  for (int trial = 0; trial < 20; ++trial) {
    const std::int64_t batch = 1 + random.below(3), tokens = 1 + random.below(9);
    const std::int64_t hidden = random.one_of<std::int64_t>({1, 7, 64, 96, 257, 1024, 2048});
    SCOPED_TRACE(fmt::format("batch={} tokens={} hidden={}", batch, tokens, hidden));
    const Shape shape{batch, tokens, hidden};
    const Tensor residual = make_tensor(*backend, shape, random.normals(shape, 1, 2)),
                 branch = make_tensor(*backend, shape, random.normals(shape)),
                 gamma = make_tensor(*backend, {hidden}, random.normals({hidden})),
                 beta = make_tensor(*backend, {hidden}, random.normals({hidden}));
    const Dropout dropout = some_dropout(random, tokens);
    const auto results = [&](bool fused) {
      const Tensor sum = make_poisoned(*backend, shape), y = make_poisoned(*backend, shape),
                   mean = make_poisoned(*backend, kept, {batch * tokens}),
                   rstd = make_poisoned(*backend, kept, {batch * tokens});
      const ResidualAdd add{.sum = sum, .residual = residual, .branch = branch, .dropout = dropout};
      const NormForward norm{.y = y, .mean = mean, .rstd = rstd, .x = sum, .gamma = gamma, .beta = beta};
      if (fused) {
        backend->residual_add_norm({.add = add, .norm = norm});
      } else {
        backend->residual_add(add);
        backend->norm_forward(norm);
      }
      return std::vector{download_values(*backend, sum), download_values(*backend, y), download_values(*backend, mean),
                         download_values(*backend, rstd)};
    };
    EXPECT_EQ(results(true), results(false));
  }
}

INSTANTIATE_TEST_SUITE_P(Every, FusedNorm, ::testing::ValuesIn(back_ends()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace teratron::testing
