// What is wrong with the pipeline that a training configuration asks for.
#pragma once

#include <string>
#include <vector>

#include "train/config.h"

namespace teratron {

// A line each, which names the flags and the nearest values that work. Other numbers of the configuration may be
// anything; faults that are theirs are left to others.
std::vector<std::string> pipeline_faults(const TrainConfig& config);

}  // namespace teratron
