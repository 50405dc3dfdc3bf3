// Choosing the next token from logits: greedy, or drawn after temperature, top-k and top-p (nucleus; Holtzman et al.
// 2020) have cut the distribution.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/faults.h"

namespace teratron {

struct SamplingSettings {
  double temperature = 1.0;  // 0: greedy
  std::int64_t top_k = 0;    // keep the k likeliest; 0: all
  double top_p = 1.0;        // then keep the likeliest until their probability reaches p; at least one is kept
  std::uint64_t seed = 1234;

  Faults faults() const;
};

// The token for `position` of the text: a pure function of (logits, settings, position).
std::int32_t sample_token(std::span<const float> logits, const SamplingSettings& settings, std::int64_t position);

}  // namespace teratron
