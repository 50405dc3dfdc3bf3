// What slices of tokens cost in a stage of this run: for --token-slices auto, for --defer-weight-gradients, and for
// what is told of the pipeline.
#pragma once

#include <optional>

#include "comm/communicator.h"
#include "plan/profile.h"
#include "train/config.h"

namespace teratron {

// From the file of --profile, which the first rank reads and tells the others, so that all plan alike; nothing where
// none is given and none is needed. Every rank of `world` calls it. UserError: no file where one is
// needed, one that is no profile, was measured for something else, or for shorter sequences.
std::optional<plan::Profile> slice_costs(const TrainConfig& config, Communicator& world);

}  // namespace teratron
