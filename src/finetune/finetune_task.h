// Fine-tuning as a Trainer has it.
#pragma once

#include "finetune/config.h"
#include "train/training_task.h"

namespace teratron {

// This tensor-parallel rank's model, with the sets to train on and to score after each epoch, which must outlive it.
// `run`: train_config()'s.
TrainingTask make_finetune_task(const TrainConfig& run, const TaskSet& training, const TaskSet& validation,
                                GroupRank tensor = {});

}  // namespace teratron
