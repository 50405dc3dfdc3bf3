// What `finetune` and `eval TASK` tell of a model's outputs for a set.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "tasks/task.h"

namespace teratron {

// "accuracy 71.20, f1 68.01"
std::string text_of(std::span<const TaskScore> scores);
nlohmann::ordered_json json_of(std::span<const TaskScore> scores);

// Of the task's format for predictions: ".tsv" or ".json".
std::string_view predictions_extension(TaskKind task);

}  // namespace teratron
