// Fine-tuning as a Trainer has it.
#pragma once

#include "finetune/config.h"
#include "train/training_task.h"

namespace teratron {

// This tensor-parallel rank's model, with the sets to train on and to score after each epoch, which must outlive it.
// `run`: train_config()'s. Its checkpoints say that they are of a run of `finetune --task KIND`.
TrainingTask make_finetune_task(const TrainConfig& run, TaskKind kind, const TaskSet& training,
                                const TaskSet& validation, GroupRank tensor = {});

// What a run goes on with and no other (require_same_run).
DataIdentity data_of(const TaskSet& training, const TaskSet& validation);

}  // namespace teratron
