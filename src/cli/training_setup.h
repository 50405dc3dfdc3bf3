// What train and profile make of a training configuration before any rank runs, or on each.
#pragma once

#include <memory>

#include "profile/pipeline_profile.h"
#include "runtime/backend_choice.h"
#include "train/config.h"

namespace teratron {

// The tokenizer's, or that of --vocab-size. UserError where neither is given or they contradict one another.
std::int64_t vocabulary_size(const TrainConfig& config);

}  // namespace teratron
