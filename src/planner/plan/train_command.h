// The `teratron train` command of a configuration: its words are read back to the same values.
#pragma once

#include <string>
#include <vector>

#include "train/config/config.h"

namespace teratron::plan {

// What follows `teratron train`: a preset of the model, then every flag that differs from what is then set.
std::vector<std::string> train_words(const TrainConfig& config);

// As a shell takes it; `devices_of_host` > 0: under mpirun where there are more ranks than that.
std::string train_command(const TrainConfig& config, std::int64_t devices_of_host = 0);

}  // namespace teratron::plan
