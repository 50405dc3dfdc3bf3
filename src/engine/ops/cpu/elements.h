// Where an activation stands in the whole, unsplit tensor: the number its dropout mask is drawn for (backend.h, struct
// Dropout).
#pragma once

#include <cstdint>

#include "ops/backend.h"

namespace teratron {

// The number of activation (b, t, 0) of local [batch, tokens, hidden].
inline std::int64_t first_element(const Dropout& dropout, std::int64_t b, std::int64_t t, std::int64_t hidden) {
  return ((dropout.first_sample + b) * dropout.sequence_length + dropout.first_position + t) * hidden;
}

}  // namespace teratron
