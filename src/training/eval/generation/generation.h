// Autoregressive generation with key/value caches, of one text or many at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "eval/generation/sampling.h"
#include "model/language_model.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

struct GenerationSettings {
  SamplingSettings sampling;
  std::int64_t max_new_tokens = 100;
  std::optional<std::int32_t> stop;       // end-of-text: ends the generation and is not emitted
  std::vector<std::int32_t> other_stops;  // more tokens that do so
  // Tokens of the tokenizer; 0: the model's vocabulary. Ids beyond, of a padded vocabulary, have no text: their logits
  // are cut off first.
  std::int64_t tokens = 0;
  // Natural logarithms of probabilities by the softmax of the model's own logits, without temperature, penalties or
  // biases.
  bool log_probabilities = false;         // new tokens
  bool prompt_log_probabilities = false;  // a prompt's tokens

  bool ends_at(std::int32_t token) const {
    return stop == token || std::ranges::find(other_stops, token) != other_stops.end();
  }
};

// Text to generate.
struct GenerationRequest {
  std::vector<std::int32_t> prompt;  // at least one token, at most the model's positions
  // Numbers of the prompt and sample, from 0, on which draws depend beside the seed. A sample is below 2^24.
  std::uint32_t number = 0, sample = 0;
};

enum class GenerationEnd {
  kLength,    // max_new_tokens were made
  kEndToken,  // GenerationSettings::stop, or one of other_stops
  kStopped,   // GenerationEvents::token returned false
};

// Events while texts are generated. `request` is an index; events of one request come in order.
struct GenerationEvents {
  // Log-probabilities of all of a prompt's tokens but the first, if the settings ask for them.
  std::function<void(std::size_t request, std::span<const double> log_probabilities)> prompt;
  // New token; its log-probability is NaN if the settings do not ask for it. Returning false ends the text. Every rank
  // must return the same.
  std::function<bool(std::size_t request, std::int32_t token, double log_probability)> token;
  // End of a text. `moves`: how often the positions ran out, and the later half of the text became the context.
  std::function<void(std::size_t request, GenerationEnd end, std::int64_t moves)> finished;
};

// Generates all texts, as many at a time as the model has caches, the longest prompts first. The next text takes the
// slot of one that ends. Each text gets the tokens that it gets alone, bit for bit (on a GPU: within the rounding of
// LinearForward::rows_alone). All ranks call it together. The model's purpose is kGeneration; prompts are fed in pieces
// of its `tokens`. Beginnings that prompts share are computed once, as long as a cache has them (Generator). UserError:
// a prompt longer than the model's positions; logits that are not finite, with the prompt's number.
void generate_all(LanguageModel& model, std::span<const GenerationRequest> requests, const GenerationSettings& settings,
                  const GenerationEvents& events);

// Generates one text: calls `emit` with each new token after `prompt`. Returns their number.
std::int64_t generate(LanguageModel& model, std::span<const std::int32_t> prompt, const GenerationSettings& settings,
                      const std::function<void(std::int32_t)>& emit);

// Tokens of a cache: the longest prompt and all new tokens but the last, at most the model's positions.
std::int64_t cache_tokens_for(std::span<const GenerationRequest> requests, const GenerationSettings& settings,
                              const ModelConfig& config);

// Number of caches for so many requests: at most 32, which share the cost of reading the weights, and at most a GiB
// together, unless one is larger.
std::int64_t choose_caches(std::size_t requests, std::int64_t cache_tokens, const ModelConfig& config,
                           std::int64_t bytes_of_element);

// Tokens of a prompt: special ones where their text stands, the tokenizer's beginning of a text, and for an empty
// prompt its end of one. UserError: it has none.
std::vector<std::int32_t> prompt_tokens(const Tokenizer& tokenizer, std::string_view prompt);

// Rule for a prompt that is longer than the model's positions.
enum class LongPrompt {
  kRefuse,
  kCutLeft,   // drops its beginning, but for the token that begins every text
  kCutRight,  // drops its end
};

// Shortens the prompt by the rule; returns the number of dropped tokens. `beginning`: the tokenizer's beginning of a
// text. UserError, with `name` for the prompt: the rule refuses it.
std::int64_t fit_prompt(std::vector<std::int32_t>& prompt, std::int64_t positions, LongPrompt rule,
                        std::optional<std::int32_t> beginning, std::string_view name);

}  // namespace teratron
