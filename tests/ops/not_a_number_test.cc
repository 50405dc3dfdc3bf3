// Values that are no numbers go through the functions of every back end, so that a training that diverges shows it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/back_ends.h"
#include "ops/trials/host.h"

namespace teratron::testing {
namespace {

class NotNumbers : public ::testing::TestWithParam<BackEnd> {
 protected:
  std::unique_ptr<Backend> backend_ = GetParam().make();
};

TEST_P(NotNumbers, StayInEveryActivation) {
  constexpr std::int64_t kColumns = 37;  // whole vectors, and a part of one
  const Tensor x(*backend_, backend_->compute_dtype(), {1, kColumns}),
      y(*backend_, backend_->compute_dtype(), {1, kColumns});
  for (const Activation activation :
       {Activation::kGeluTanh, Activation::kGeluErf, Activation::kSilu, Activation::kTanh}) {
    for (const std::int64_t at : {0, 18, 36}) {
      backend_->fill_normal(x, {.seed = 3}, 0, 1.0);
      backend_->fill(x.ref().slice(1, at, at + 1), std::numeric_limits<double>::quiet_NaN());
      backend_->activation_forward({.y = y, .x = x, .activation = activation});
      const Values values = download_values(*backend_, y);
      for (std::int64_t i = 0; i < kColumns; ++i) {
        EXPECT_EQ(std::isnan(values[static_cast<std::size_t>(i)]), i == at)
            << static_cast<int>(activation) << ", " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, NotNumbers, ::testing::ValuesIn(back_ends()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace teratron::testing
