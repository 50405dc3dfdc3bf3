// The folder of --save, before a run writes its first checkpoint there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "train/config/config.h"

namespace teratron {

// UserError where it holds another run's checkpoints than those of --load. Changes nothing.
void check_save_folder(const TrainConfig& config);

// Once it is certain that the run goes on after `iteration` updates: checkpoints after those that lie in its folder are
// set aside, and config.toml is written. Returns where the former are now. EnvironmentError.
std::vector<std::filesystem::path> begin_save_folder(const TrainConfig& config, std::int64_t iteration);

}  // namespace teratron
