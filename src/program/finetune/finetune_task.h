// Fine-tuning as a task of a Trainer.
#pragma once

#include "finetune/config.h"
#include "train/training_task.h"

namespace teratron {

// Task of a tensor-parallel rank: its model, and the sets to train on and to score after each epoch, which must outlive
// it. `run`: by train_config(). Its checkpoints record a run of `finetune --task KIND`.
TrainingTask make_finetune_task(const TrainConfig& run, TaskKind kind, const TaskSet& training,
                                const TaskSet& validation, GroupRank tensor = {});

// Identity of the data, which a resumed run must have.
DataIdentity data_of(const TaskSet& training, const TaskSet& validation);

// Checks that the run in --save is the one to resume. `run`: by train_config(), with a checkpoint to load. UserError:
// the run is of another task, other examples or other settings; lists all differences by finetune's flags, and
// remedies.
void require_same_run(const FinetuneConfig& config, const TrainConfig& run, const DataIdentity& data);

}  // namespace teratron
