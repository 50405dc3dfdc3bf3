// The training that a plan is for: settings that its user leaves open, and the `teratron train` command.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

// The words after `teratron train`: a preset of the model, then every flag that differs from the settings so far. They
// are read back to the same values, but that adapters without --finetune get one of a folder called model.
std::vector<std::string> train_words(const TrainConfig& config);

// The command for a shell. `devices_of_host` > 0: under mpirun if there are more ranks than that.
std::string train_command(const TrainConfig& config, std::int64_t devices_of_host = 0);

}  // namespace teratron::plan
