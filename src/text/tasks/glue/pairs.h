// MNLI and QQP as sequences, and the labels that a model's outputs mean.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "tasks/glue/format.h"
#include "tasks/task.h"

namespace teratron::glue {

// A is the premise or the first question, B the other; the longer one is cut. Rows are counted on through the files.
// Predictions have every row of them: those that were skipped get the first label, since the site takes whole sets.
std::unique_ptr<TaskSet> open_pairs(Task task, std::span<const std::filesystem::path> files, const Tokenizer& tokenizer,
                                    const TaskReading& reading, bool training);

}  // namespace teratron::glue
