// Heads of models for tasks.
#pragma once

#include "checkpoint/initial_weights.h"
#include "tasks/task.h"

namespace teratron {

// Gives a model the head of a task. Those of classify and tag have the labels of `reading`.
void set_task_head(ModelConfig& model, TaskKind task, const TaskReading& reading = {});
// Labels of a model with the head of such a task (classify, tag). UserError: it has another head.
LabelSet labels_of(const WeightSource& source, TaskKind task);

}  // namespace teratron
