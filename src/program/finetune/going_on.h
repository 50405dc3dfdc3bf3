// Whether `finetune` goes on with the run that its --save holds, in the words of its own flags.
#pragma once

#include "finetune/config.h"
#include "train/training_task.h"

namespace teratron {

// `run` is of train_config() and has a checkpoint to load. UserError: the run is not one of this task; it has other
// examples; settings differ that would make another run of it. All differences at once, and what can be done.
void require_same_run(const FinetuneConfig& config, const TrainConfig& run, const DataIdentity& data);

}  // namespace teratron
