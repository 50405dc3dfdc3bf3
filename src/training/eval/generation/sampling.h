// Choice of the next token from logits: greedy, or drawn after temperature, top-k and top-p (nucleus; Holtzman et al.
// 2020). Biases, and penalties of tokens that the text has, may come before: CTRL's (arXiv 1909.05858), and those of
// OpenAI's interface.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/faults.h"

namespace teratron {

// Penalties of repetition. With others the logits of a sound model could overflow.
constexpr double kLeastPenalty = 1e-3, kMostPenalty = 1e3;
// Penalties of presence and frequency, and biases: at most so much up or down, as in OpenAI's interface.
constexpr double kMostAdditivePenalty = 2, kMostBias = 100;

// Amount added to a token's logit.
struct LogitBias {
  std::int32_t token = 0;
  double bias = 0;
};

struct SamplingSettings {
  double temperature = 1.0;  // 0: greedy
  std::int64_t top_k = 0;    // keep the k likeliest; 0: all
  double top_p = 1.0;        // then keep the likeliest until their probability reaches p; at least one is kept
  std::uint64_t seed = 1234;
  double repetition_penalty = 1.0;                     // penalize_repetition(); 1: none
  double presence_penalty = 0, frequency_penalty = 0;  // as in OpenAI's interface; 0: none
  std::vector<LogitBias> biases;                       // of tokens that the logits have

  Faults faults() const;
  bool changes_logits() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0 || !biases.empty();
  }
};

// Index of a draw: position in the text, prompt, and sample (at most 2^24 - 1). Draws of different indices are
// independent.
struct DrawIndex {
  std::int64_t position = 0;
  std::uint32_t prompt = 0, sample = 0;
};

// Samples a token: a pure function of (logits, settings, index), without biases and penalties. UserError: logits that
// are not finite.
std::int32_t sample_token(std::span<const float> logits, const SamplingSettings& settings, const DrawIndex& index);
inline std::int32_t sample_token(std::span<const float> logits, const SamplingSettings& settings,
                                 std::int64_t position) {
  return sample_token(logits, settings, {.position = position});
}

// Repetition penalty of the CTRL paper (section 4.1), with Hugging Face's rule for signs: the logit of every token in
// `text` is divided by `penalty` if it is positive, else multiplied by it; once per token.
void penalize_repetition(std::span<float> logits, std::span<const std::int32_t> text, double penalty);

// Applies the biases, then the repetition penalty to the tokens of `text`, then the other penalties to those after its
// first `prompt` ones, in vLLM's order.
void adjust_logits(std::span<float> logits, const SamplingSettings& settings, std::span<const std::int32_t> text,
                   std::size_t prompt);

// Natural logarithm of the softmax of `logits` at `token`.
double log_probability(std::span<const float> logits, std::int32_t token);

}  // namespace teratron
