// The labels of tasks that have them, in the order of their numbers: those of examples and of a model's outputs.
// Scores, GLUE's files and checkpoints all take them from here.
#pragma once

#include <span>
#include <string_view>

#include "tasks/task.h"

namespace teratron {

// As Hugging Face's data sets name them, in Megatron-LM's order: contradiction, entailment, neutral (MNLI);
// not_duplicate, duplicate (QQP). Empty: outputs of the task are no labels.
std::span<const std::string_view> label_names(TaskKind task);

}  // namespace teratron
