// Checks that outputs of a model are finite before they become scores, vectors or tokens.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/dtype.h"
#include "base/error.h"

namespace teratron {

// Index of the first value that is infinite or not a number; nullopt: all are finite.
std::optional<std::size_t> first_not_finite(std::span<const float> values);

// An output of a model is infinite or not a number.
class OutputNotFiniteError : public UserError {
 public:
  using UserError::UserError;
};

// Throws an OutputNotFiniteError: `what`, an output in `compute_dtype`, is not finite; with advice. load_weights() has
// verified that the weights are finite, so values between overflow.
[[noreturn]] void throw_output_not_finite(std::string_view what, DType compute_dtype);

}  // namespace teratron
