// What a plan assumes of a training where its user says nothing.
#pragma once

#include <cstdint>

#include "cluster/cluster.h"
#include "train/config/config.h"

namespace teratron::plan {

// Sets the CUDA back end where the device is faster in 16 bits than in fp32. `precision_is_given`: --bf16 or --fp16
// stays as it is; else training is in bf16, or in fp16 on Volta, which has no other.
void choose_device_settings(TrainConfig& config, const Device& device, bool precision_is_given);
// Compute capability below 8.0, which the CUDA back end refuses (ops/cuda/cuda_backend.cc). By name: Volta.
bool is_refused_by_cuda_backend(const Device& device);

// Entries: those of --vocab-size or of the tokenizer, which is read for it; else of the vocabulary that GPT-2 or BERT
// was published with.
std::int64_t vocabulary_size(const TrainConfig& config);

}  // namespace teratron::plan
