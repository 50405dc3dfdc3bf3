// What a model computes must be finite before anything is made of it: a score, a vector, a token.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/dtype.h"

namespace teratron {

// The index of the first value that is infinite or not a number.
std::optional<std::size_t> first_not_finite(std::span<const float> values);

// UserError: `what`, which the model gives in `compute_dtype`, is not finite; says what to do. Weights are known to be
// finite where load_weights() has verified them, so the values between overflow.
[[noreturn]] void throw_output_not_finite(std::string_view what, DType compute_dtype);

}  // namespace teratron
