// Request of /v1/completions, read and checked.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "serve/text/text_engine.h"

namespace teratron {

// Limits of the server that a request must fit, and where its texts end.
struct CompletionLimits {
  std::int64_t positions = 0;      // of the model's context
  std::size_t texts = 0;           // of a request
  std::vector<std::int32_t> ends;  // tokens, beside the tokenizer's end of a text
};

struct CompletionRequest {
  std::vector<std::vector<std::int32_t>> prompts;
  std::vector<std::string> prompt_texts;  // echoed
  std::int64_t samples = 1;               // of each prompt: "best_of"
  std::int64_t returned = 1;              // of them, the likeliest: "n"
  std::vector<std::string> stop_texts;
  GenerationSettings settings;               // but for max_new_tokens, which jobs() sets from max_tokens
  std::optional<std::int64_t> max_tokens;    // each prompt's own default otherwise
  std::optional<std::int64_t> alternatives;  // "logprobs": given, then tokens are scored
  std::size_t most_calls = 0;                // of tools in a chat's answer; 0: they are of its text
  bool echo = false, stream = false, includes_usage = false;

  // Texts to make, samples of the first prompt, of the second, ..
  std::vector<TextJob> jobs(const CompletionLimits& limits) const;
};

// ApiError of status 400: a field is wrong or unknown, or a prompt and its new tokens do not fit.
CompletionRequest read_completion_request(const nlohmann::json& request, const Tokenizer& tokenizer,
                                          const CompletionLimits& limits);

}  // namespace teratron
