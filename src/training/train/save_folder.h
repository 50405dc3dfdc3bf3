// The folder of --save, before a run writes its first checkpoint there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "train/config/config.h"

namespace teratron {

// UserError: the folder holds checkpoints of another run than that of --load. Changes nothing.
void check_save_folder(const TrainConfig& config);

// Sets aside the checkpoints in the run's folder that come after `iteration`, and writes config.toml. Called when
// nothing can stop the run from going on there. Returns where the checkpoints are now. EnvironmentError.
std::vector<std::filesystem::path> begin_save_folder(const TrainConfig& config, std::int64_t iteration);

}  // namespace teratron
