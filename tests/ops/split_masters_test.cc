// AdamW leaves a weight in halves as split_float says, bit for bit: where it falls midway between two bf16, too, which
// one random weight in 65,536 does.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/back_ends.h"

namespace teratron::testing {
namespace {

class SplitMasters : public ::testing::TestWithParam<BackEnd> {
 protected:
  template <class T>
  Tensor on_device(DType dtype, const std::vector<T>& values) const {
    Tensor tensor(*backend_, dtype, {std::ssize(values)});
    backend_->upload(tensor, values.data());
    return tensor;
  }
  template <class T>
  std::vector<T> on_host(const Tensor& tensor) const {
    std::vector<T> values(static_cast<std::size_t>(tensor.ref().elements()));
    backend_->download(values.data(), tensor);
    return values;
  }

  std::unique_ptr<Backend> backend_ = GetParam().make();
};

TEST_P(SplitMasters, AreStoredAsSplitFloatSays) {
  ASSERT_EQ(backend_->compute_dtype(), DType::kBF16);
  Random random(11);
  std::vector<Bf16> nearest;
  std::vector<float> steps, updated;
  // Every bf16 far from both ends of the range moves by some fourths of the distance to the next one.
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    const std::uint32_t exponent = upper >> 7 & 0xFFU;
    if (exponent < 30 || exponent > 220) continue;
    const auto value = std::bit_cast<float>(upper << 16);
    const float distance = std::ldexp(1.0F, static_cast<int>(exponent) - 127 - 7);
    nearest.emplace_back(value);
    steps.push_back(distance * static_cast<float>(random.below(17) - 8) / 4);
    updated.push_back(value - steps.back());  // exact
  }
  const std::size_t count = nearest.size();
  const Tensor working = on_device(DType::kBF16, nearest),
               remainder = on_device(DType::kU16, std::vector<std::uint16_t>(count)),
               gradient = on_device(DType::kF32, std::vector<float>(count)), moment1 = on_device(DType::kF32, steps),
               moment2 = on_device(DType::kF32, std::vector<float>(count, 1.0F));
  // Moments that do not decay, and whose second is 1: the first one is the step.
  backend_->adamw({.parameters = {{.value = remainder,
                                   .gradient = gradient,
                                   .moment1 = moment1,
                                   .moment2 = moment2,
                                   .working = working,
                                   .weight_decay = 0}},
                   .learning_rate = 1,
                   .beta1 = 1,
                   .beta2 = 1,
                   .epsilon = 0,
                   .correction1 = 1,
                   .correction2 = 1,
                   .gradient_scale = 1});
  const auto got_nearest = on_host<Bf16>(working);
  const auto got_remainder = on_host<std::uint16_t>(remainder);
  for (std::size_t i = 0; i < count; ++i) {
    const SplitFloat expected = split_float(std::bit_cast<std::uint32_t>(updated[i]));
    ASSERT_EQ(got_nearest[i].bits, expected.nearest.bits) << updated[i];
    ASSERT_EQ(got_remainder[i], expected.remainder) << updated[i];
  }
}

// No other masters are split.
std::vector<BackEnd> back_ends_of_bf16() {
  std::vector<BackEnd> chosen = back_ends();
  std::erase_if(chosen, [](const BackEnd& one) { return one.name.find("bf16") == std::string::npos; });
  return chosen;
}

INSTANTIATE_TEST_SUITE_P(Every, SplitMasters, ::testing::ValuesIn(back_ends_of_bf16()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace teratron::testing
