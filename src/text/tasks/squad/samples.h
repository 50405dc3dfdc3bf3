// SQuAD as sequences, and the answers in a model's outputs.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "tasks/squad/format.h"
#include "tasks/task.h"

namespace teratron::squad {

// A is the question, cut to max_query_length; B is a window of the paragraph (answers.h). Each of a question's windows
// is an example. Labels are the indices of the first answer's first and last token, both 0 if the window does not hold
// the whole answer, or there is none. An answer without answer_start is the first occurrence in the paragraph.
// Predictions are those of answers.h.
std::unique_ptr<TaskSet> open_samples(Version version, std::span<const std::filesystem::path> files,
                                      const Tokenizer& tokenizer, const TaskReading& reading, bool training);

}  // namespace teratron::squad
