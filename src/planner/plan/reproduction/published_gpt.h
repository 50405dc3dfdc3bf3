// A GPT that a paper runs in a pipeline of one copy, as a training configuration in bf16.
#pragma once

#include <cstdint>

#include "train/config/config.h"

namespace teratron::plan {

struct PublishedGpt {
  std::int64_t layers, hidden, heads, vocabulary, tokens;  // tokens: of a sequence
  std::int64_t tensor, stages;
};

// Whole sequences in 1F1B; an update takes `micro_batches` of `sequences` each.
TrainConfig config_of(const PublishedGpt& gpt, std::int64_t sequences, std::int64_t micro_batches);

}  // namespace teratron::plan
