// What `finetune` and `eval TASK` tell of a model's outputs for a set.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "tasks/task.h"

namespace teratron {

// "accuracy 71.20, f1 68.01"
std::string text_of(std::span<const TaskScore> scores);
nlohmann::ordered_json json_of(std::span<const TaskScore> scores);

}  // namespace teratron
