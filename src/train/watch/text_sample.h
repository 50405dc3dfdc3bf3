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

// Of --sample-prompt, by the run's tokenizer. UserError: a prompt that leaves no room in a sample of --seq-length.
std::vector<SamplePrompt> sample_prompts(const TrainConfig& config);

// At most `count` tokens after `prompt`, drawn one by one with the whole text so far as the context, until there is the
// token `end` (which is not returned), or the text is as long as a sample. It takes the training executor's own memory
// and changes nothing of the training. All ranks of a copy of the model call it together, and get the same.
std::vector<std::int32_t> continue_text(Executor& executor, const Model& model, std::int64_t vocab_size,
                                        std::span<const std::int32_t> prompt, std::int64_t count, std::int32_t end,
                                        const SamplingSettings& sampling);

}  // namespace teratron
