// SQuAD as sequences, and the answers that a model's outputs mean.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "tasks/squad/format.h"
#include "tasks/task.h"

namespace teratron::squad {

// A is the question, cut to max_query_length; B a window of the paragraph (windows.h), of which a question has one or
// more, each an example. Labels are the places of the first answer's first and last token, both 0 where the window does
// not hold the answer whole, or there is none. An answer without answer_start is taken where the paragraph first has
// it. Predictions are those of answers.h.
std::unique_ptr<TaskSet> open_samples(Version version, std::span<const std::filesystem::path> files,
                                      const Tokenizer& tokenizer, const TaskReading& reading, bool training);

}  // namespace teratron::squad
