// Training as a plan has it: settings that the user leaves open, and the `teratron train` command.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "train/config/config.h"

namespace teratron::plan {

// Sets the CUDA back end where the device was measured with it or, if the cluster does not say with which
// (Device::backend), where it is faster in 16 bits than in fp32. On GPUs that are faster in 16 bits training is in
// bf16, or in fp16 on Volta, which has no other. `precision_is_given`: the precision stays as it is.
void choose_device_settings(TrainConfig& config, const Device& device, bool precision_is_given);
// Compute capability below 8.0, which the CUDA back end refuses (ops/cuda/cuda_backend.cc). By name: Volta.
bool is_refused_by_cuda_backend(const Device& device);

// Entries of the vocabulary: --vocab-size, or those of the tokenizer, which is read for it; else those that the preset
// or the family was published with.
std::int64_t vocabulary_size(const TrainConfig& config);

// The words after `teratron train`: a preset of the model, then every flag that differs from the settings so far.
// `train` reads them back to the same values, except that adapters without --finetune get --finetune model.
std::vector<std::string> train_words(const TrainConfig& config);

// The command for a shell. `devices_of_host` > 0: under mpirun if there are more ranks than that.
std::string train_command(const TrainConfig& config, std::int64_t devices_of_host = 0);
std::string train_command(const TrainConfig& config, const Cluster& cluster);  // for the hosts of a cluster

}  // namespace teratron::plan
