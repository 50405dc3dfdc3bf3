// Text that the model under training continues, for those who watch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/generation/sampling.h"
#include "executor/executor.h"
#include "tokenizer/tokenizer.h"
#include "train/config/config.h"

namespace teratron {

struct SamplePrompt {
  std::string text;
  std::vector<std::int32_t> tokens;  // at least one
};

// Text samples of --sample-prompt.
struct TextSamples {
  std::vector<SamplePrompt> prompts;
  std::int64_t tokens = 0;        // of the tokenizer; rows of a padded vocabulary from here on have no text
  std::int32_t end_of_text = -1;  // where the tokenizer has one
};

// Encodes the prompts with the run's tokenizer. UserError: a prompt that leaves no room in a sample of --seq-length.
TextSamples text_samples(const TrainConfig& config);

struct ContinuationLimits {
  std::int64_t count = 0;   // the most new tokens
  std::int32_t end = -1;    // a token that ends the text and is not returned
  std::int64_t tokens = 0;  // ids from here on are never drawn; 0: the whole vocabulary may be
};

// The tokens after `prompt`, drawn one by one with the whole text so far as the context, up to the limits, or until the
// text is as long as a sample. It takes the training executor's own memory and changes nothing of the training. All
// ranks of a copy of the model call it together, and get the same. UserError, on all of them: logits are not finite.
std::vector<std::int32_t> continue_text(Executor& executor, const Model& model, std::int64_t vocab_size,
                                        std::span<const std::int32_t> prompt, const ContinuationLimits& limits,
                                        const SamplingSettings& sampling);

}  // namespace teratron
