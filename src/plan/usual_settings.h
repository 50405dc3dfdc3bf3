// What a plan assumes of a training where its user says nothing.
#pragma once

#include <cstdint>

#include "cluster/cluster.h"
#include "train/config/config.h"

namespace teratron::plan {

// Training is in 16 bits, on the CUDA back end, where the device is faster with them: bf16, or fp16 on Volta, which has
// no other.
void choose_precision(TrainConfig& config, const Device& device);

// Entries: those of --vocab-size or of the tokenizer, which is read for it; else of the vocabulary that GPT-2 or BERT
// was published with.
std::int64_t vocabulary_size(const TrainConfig& config);

}  // namespace teratron::plan
