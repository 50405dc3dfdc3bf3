// Choosing the next token from logits: greedy, or drawn after temperature, top-k and top-p (nucleus; Holtzman et al.
// 2020) have cut the distribution. Before that, tokens of the text may become less likely (CTRL, arXiv 1909.05858).
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
  double repetition_penalty = 1.0;  // penalize_repetition(); 1: none

  Faults faults() const;
};

// Where a draw stands: position of the text, of a sample (at most 2^24 - 1) of a prompt. Draws of other places are
// independent.
struct DrawPlace {
  std::int64_t position = 0;
  std::uint32_t prompt = 0, sample = 0;
};

// The token for `place`: a pure function of (logits, settings, place), without the repetition penalty. UserError:
// logits that are not finite.
std::int32_t sample_token(std::span<const float> logits, const SamplingSettings& settings, const DrawPlace& place);
inline std::int32_t sample_token(std::span<const float> logits, const SamplingSettings& settings,
                                 std::int64_t position) {
  return sample_token(logits, settings, {.position = position});
}

// Section 4.1 of the CTRL paper, with Hugging Face's rule for signs: the logit of every token of `text`, once however
// often it stands there, is divided by `penalty` where it is positive, else multiplied with it.
void penalize_repetition(std::span<float> logits, std::span<const std::int32_t> text, double penalty);

// The natural logarithm of the softmax of `logits` at `token`.
double log_probability(std::span<const float> logits, std::int32_t token);

}  // namespace teratron
