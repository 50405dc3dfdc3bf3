// Text that the model under training continues, for those who watch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/generation/generation.h"
#include "executor/executor.h"
#include "train/config/config.h"

namespace teratron {

struct SamplePrompt {
  std::string text;
  std::vector<std::int32_t> tokens;  // at least one
};

// Text samples of --sample-prompt.
struct TextSamples {
  std::vector<SamplePrompt> prompts;
  GenerationSettings settings;
};

// Encodes the prompts with the run's tokenizer, and ends their texts where `generate` ends them. UserError: a prompt
// that leaves no room in a sample of --seq-length, or is empty where the tokenizer has no end of a text.
TextSamples text_samples(const TrainConfig& config);

// The tokens after `prompt`, drawn one by one with the whole text so far as the context, until a token that ends the
// text, or until the text is as long as a sample. It takes the training executor's own memory and changes nothing of
// the training. All ranks of a copy of the model call it together, and get the same. Log-probabilities are not made.
// UserError, on all of them: logits are not finite.
std::vector<std::int32_t> continue_text(Executor& executor, const Model& model, std::int64_t vocab_size,
                                        std::span<const std::int32_t> prompt, const GenerationSettings& settings);

}  // namespace teratron
