// A layer computes the next layer's first norm, except where that begins a stage or is computed again: there the next
// layer computes it. The bits must be the same.
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

// A layer whose output another one's norm reads gets its branch's gradient from that norm; the last layer, and one that
// is computed again, make it themselves.
TEST_P(FusedNorm, GivesTheBitsOfTheTwoOperationsOneAfterTheOtherBackward) {
  const std::unique_ptr<Backend> backend = GetParam().make();
  const DType kept = backend->accumulation_dtype();
  Random random(6);
  for (int trial = 0; trial < 20; ++trial) {
    const std::int64_t batch = 1 + random.below(3), tokens = 1 + random.below(40);
    const std::int64_t hidden = random.one_of<std::int64_t>({1, 7, 64, 96, 257, 1024, 2048});
    const bool is_rms = random.coin(), accumulate_dx = random.coin();
    SCOPED_TRACE(fmt::format("batch={} tokens={} hidden={} rms={}", batch, tokens, hidden, is_rms));
    const Shape shape{batch, tokens, hidden};
    const Values old = random.normals(shape), deviations(static_cast<std::size_t>(batch * tokens), 0.75);
    const Tensor dy = make_tensor(*backend, shape, random.normals(shape)),
                 x = make_tensor(*backend, shape, random.normals(shape, 1, 2)),
                 mean = make_tensor(*backend, kept, {batch * tokens}, random.normals({batch * tokens})),
                 rstd = make_tensor(*backend, kept, {batch * tokens}, deviations),
                 gamma = make_tensor(*backend, {hidden}, random.normals({hidden}));
    const Dropout dropout = some_dropout(random, tokens);
    const auto results = [&](bool fused) {
      const Tensor dx = make_tensor(*backend, shape, old), dbranch = make_poisoned(*backend, shape),
                   dgamma = make_poisoned(*backend, kept, {hidden}), dbeta = make_poisoned(*backend, kept, {hidden});
      const NormBackward norm{.dx = dx,
                              .dgamma = dgamma,
                              .dbeta = is_rms ? TensorRef() : dbeta.ref(),
                              .dy = dy,
                              .x = x,
                              .mean = is_rms ? TensorRef() : mean.ref(),
                              .rstd = rstd,
                              .gamma = gamma,
                              .accumulate_dx = accumulate_dx};
      const DropoutBackward below{.dbranch = dbranch, .dsum = dx, .dropout = dropout};
      if (fused) {
        backend->residual_add_norm_backward({.norm = norm, .add = below});
      } else {
        backend->norm_backward(norm);
        backend->dropout_backward(below);
      }
      std::vector<Values> values{download_values(*backend, dx), download_values(*backend, dbranch),
                                 download_values(*backend, dgamma)};
      if (!is_rms) values.push_back(download_values(*backend, dbeta));
      return values;
    };
    EXPECT_EQ(results(true), results(false));
  }
}

INSTANTIATE_TEST_SUITE_P(Every, FusedNorm, ::testing::ValuesIn(back_ends()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace teratron::testing
