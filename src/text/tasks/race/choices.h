// RACE as sequences, four for each question, and the options that a model's outputs mean.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "tasks/race/format.h"
#include "tasks/task.h"

namespace teratron::race {

// A is the article, B the question with one of its options, cut to max_query_length; then the longer one is cut, which
// is nearly always the article. Megatron-LM puts the question first; it too cuts it to 128 tokens and the article's
// end.
std::unique_ptr<TaskSet> open_choices(std::span<const std::filesystem::path> files, const Tokenizer& tokenizer,
                                      const TaskReading& reading, bool training);

}  // namespace teratron::race
