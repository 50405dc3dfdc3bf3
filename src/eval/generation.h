// Autoregressive generation with a key/value cache.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "eval/sampling.h"
#include "model/language_model.h"

namespace teratron {

struct GenerationSettings {
  SamplingSettings sampling;
  std::int64_t max_new_tokens = 100;
  std::optional<std::int32_t> stop;  // end-of-text: ends the generation, is not handed out
};

// Calls `emit` with each new token after `prompt` (at least one token). When the positions run out, the later half of
// the text so far becomes the context of what follows. The model's purpose is kGeneration, its `tokens` at least 1;
// the prompt is fed in pieces of that size. Returns the number of tokens handed out.
std::int64_t generate(LanguageModel& model, std::span<const std::int32_t> prompt, const GenerationSettings& settings,
                      const std::function<void(std::int32_t)>& emit);

}  // namespace teratron
