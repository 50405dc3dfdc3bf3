#include "eval/finite_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace teratron {

std::optional<std::size_t> first_not_finite(std::span<const float> values) {
  float zeros = 0;  // NaN if any value is not finite: 0 times it is NaN, and so is the sum
  for (const float value : values) zeros += 0 * value;
  if (zeros == 0) return std::nullopt;
  const auto found = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  return static_cast<std::size_t>(found - values.begin());
}

void throw_output_not_finite(std::string_view what, DType compute_dtype) {
  if (compute_dtype == DType::kF16) {
    throw OutputNotFiniteError(fmt::format(
        "{} is not finite: values of fp16 end at 65504, and this model's become larger; take --bf16 in place of "
        "--fp16, or neither",
        what));
  }
  throw OutputNotFiniteError(fmt::format(
      "{} is not finite: with the model's weights, values become too large to be numbers; training has diverged, or "
      "the weights are damaged",
      what));
}

}  // namespace teratron
