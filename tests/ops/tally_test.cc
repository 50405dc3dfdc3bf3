// Tallies on every back end: the bits of a tensor, and values that are no numbers. Sums and extremes are compared with
// the definition by the trials.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/philox.h"
#include "ops/back_ends.h"
#include "ops/trials/host.h"

namespace teratron::testing {
namespace {

class Tallies : public ::testing::TestWithParam<BackEnd> {
 protected:
  Tally tally_of(const TensorRef& values) {
    const Tensor memory(*backend_, DType::kU8, {sizeof(Tally)});
    backend_->fill_zero(memory);
    backend_->tally(memory, values);
    Tally tally;
    backend_->download(&tally, memory);
    return tally;
  }
  std::vector<std::byte> bytes_of(const TensorRef& values) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(values.bytes()));
    backend_->download(bytes.data(), values);
    return bytes;
  }

  std::unique_ptr<Backend> backend_ = GetParam().make();
};

TEST_P(Tallies, AnyFlippedBitShows) {
  RandomSequence random({.seed = 11});
  const Tensor values(*backend_, backend_->compute_dtype(), {10007});
  backend_->fill_normal(values, {.seed = 3}, 0, 0.02);
  const Tally whole = tally_of(values);
  const std::vector<std::byte> bytes = bytes_of(values);
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<std::byte> flipped = bytes;
    flipped[random.below(flipped.size())] ^= static_cast<std::byte>(1U << random.below(8));
    backend_->upload(values, flipped.data());
    EXPECT_NE(tally_of(values).bits, whole.bits);
  }
  backend_->upload(values, bytes.data());
  EXPECT_EQ(tally_of(values), whole);
}

TEST_P(Tallies, ValuesThatAreNoNumbersStay) {
  const Tensor values(*backend_, backend_->compute_dtype(), {5003});
  for (const double odd : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const std::int64_t at : {0, 2500, 5002}) {
      backend_->fill_normal(values, {.seed = 3}, 0, 0.02);
      backend_->fill(values.ref().slice(0, at, at + 1), odd);
      const Tally tally = tally_of(values);
      EXPECT_EQ(std::isnan(tally.largest), std::isnan(odd)) << at;
      EXPECT_FALSE(std::isfinite(tally.largest) || std::isfinite(tally.squares)) << at;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Tallies, ::testing::ValuesIn(back_ends()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace teratron::testing
