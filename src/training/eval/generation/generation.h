// Autoregressive generation with key/value caches: one text, or many at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "eval/generation/sampling.h"
#include "model/language_model.h"

namespace teratron {

struct GenerationSettings {
  SamplingSettings sampling;
  std::int64_t max_new_tokens = 100;
  std::optional<std::int32_t> stop;  // end-of-text: ends the generation, is not handed out
  // Tokens of the tokenizer; 0: as many as the model's vocabulary has. Ids from here on, to which a vocabulary is
  // padded, have no text: their logits are left out before all else.
  std::int64_t tokens = 0;
  // Natural logarithms of probabilities, by the softmax of the model's own logits: neither temperature nor penalty.
  bool log_probabilities = false;         // of new tokens
  bool prompt_log_probabilities = false;  // of a prompt's tokens
};

// One text to generate.
struct GenerationRequest {
  std::vector<std::int32_t> prompt;  // at least one token, at most as many as the model has positions
  // What its draws depend on, beside the seed. Prompts and samples count from 0; samples are at most 2^24.
  std::uint32_t number = 0, sample = 0;
};

enum class GenerationEnd {
  kLength,    // max_new_tokens were made
  kEndToken,  // GenerationSettings::stop
  kStopped,   // GenerationEvents::token said so
};

// What becomes known while texts are generated. `request` is an index; those of one request come in order.
struct GenerationEvents {
  // Of all of a prompt's tokens but the first, which nothing comes before; where settings ask for it.
  std::function<void(std::size_t request, std::span<const double> log_probabilities)> prompt;
  // A new token; NaN where its probability is not asked for. False: the text is to end. Every rank must say the same.
  std::function<bool(std::size_t request, std::int32_t token, double log_probability)> token;
  // `moves`: how often the positions ran out, and the later half of the text became the context of what followed.
  std::function<void(std::size_t request, GenerationEnd end, std::int64_t moves)> finished;
};

// Generates all texts, as many at a time as the model has caches, the longest prompts first; a text that ends makes
// room for the next. Each gets the tokens that it gets alone, bit for bit (on a GPU: within the rounding of
// LinearForward::rows_alone). All ranks call it together. The model's purpose is kGeneration, its `tokens` at least 1:
// prompts are fed in pieces of that size. Prompts that are the same are computed once where they meet. UserError: a
// prompt longer than the model's positions; logits that are not finite, with the prompt's number.
void generate_all(LanguageModel& model, std::span<const GenerationRequest> requests, const GenerationSettings& settings,
                  const GenerationEvents& events);

// The same of one text: calls `emit` with each new token after `prompt`. Returns the number of tokens handed out.
std::int64_t generate(LanguageModel& model, std::span<const std::int32_t> prompt, const GenerationSettings& settings,
                      const std::function<void(std::int32_t)>& emit);

// The tokens a cache needs room for: those of the longest prompt and all that are made but the last, as far as there
// are positions.
std::int64_t cache_tokens_for(std::span<const GenerationRequest> requests, const GenerationSettings& settings,
                              const ModelConfig& config);

// A number of caches that suits so many requests: at most 32, which make most of what reading the weights costs, and
// together at most a GiB, unless one is larger.
std::int64_t choose_caches(std::size_t requests, std::int64_t cache_tokens, const ModelConfig& config,
                           std::int64_t bytes_of_element);

// What becomes of a prompt that is longer than the model's positions.
enum class LongPrompt {
  kRefuse,
  kCutLeft,   // its beginning is lost
  kCutRight,  // its end is
};

// Makes the prompt fit; returns how many tokens were lost. UserError, which calls the prompt `name`: it was refused.
std::int64_t fit_prompt(std::vector<std::int32_t>& prompt, std::int64_t positions, LongPrompt rule,
                        std::string_view name);

}  // namespace teratron
