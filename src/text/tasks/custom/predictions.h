// Predictions of labels or numbers for the rows of users' own files: JSON lines,
//
//   {"index": 0, "label": "positive", "probabilities": {"negative": 0.07, "positive": 0.93}}
//   {"index": 0, "number": 3.25}                                             for numbers
//
// with the index of the row in its files, counted from 0.
#pragma once

#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/task.h"
#include "tasks/task_entry.h"

namespace teratron::custom {

// Writes a line for each row, whole or not at all. outputs[i] are logits of the labels, or a number. EnvironmentError:
// it cannot be written.
void write_predictions(const std::filesystem::path& path, const TaskOutputValues& outputs, const LabelSet& labels);

struct Predictions {
  bool are_numbers = false;
  std::vector<std::string> values;  // [rows]: labels, or numbers as they are written
};
// Reads the predictions of `rows` rows; other members do not matter. UserError, with the line: no such object, a label
// among numbers, a number beyond `most` or below its opposite, a row that is predicted twice or not at all, an index
// beyond the rows.
Predictions read_predictions(const std::filesystem::path& path, std::size_t rows,
                             double most = std::numeric_limits<float>::max());

// Report of scores over `examples`, each called an `item`. `left_out`: rows that were not scored, for want of a
// `known`, such as "label".
ScoreReport report_of(std::span<const TaskScore> scores, std::int64_t examples, std::int64_t left_out,
                      std::string_view known, std::string_view item = "example");

}  // namespace teratron::custom
