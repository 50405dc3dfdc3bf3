// What is wrong with the pipeline that a training configuration asks for.
#pragma once

#include "train/config.h"

namespace teratron {

// Those that the layout does not have alone, with the nearest values that work. Numbers of other options may be
// anything.
Faults pipeline_faults(const TrainConfig& config);

}  // namespace teratron
