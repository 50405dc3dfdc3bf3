// Labels of anyone's examples: names, of which the training files decide the set, or numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tasks/classify/table.h"

namespace teratron::classify {

// The finite number that all of a text is, within fp32.
std::optional<double> number_of(std::string_view text);

// The labels of a table to train on. Names are sorted: by value where all are whole numbers, else by their bytes. By
// LabelKind::kAuto labels are numbers where all are, and one has a fraction; whole numbers of one value, as 1, 1.0 and
// 01, are one label, which has the shortest name of them. UserError: no label; all labels are the
// same name; by LabelKind::kNumbers one is no number (with its file and line), or by LabelKind::kAuto is none where
// another has a fraction.
LabelSet labels_in(const Table& table, LabelKind kind);

// Converts labels of one set to the 32-bit words of TaskExamples::labels.
class LabelWords {
 public:
  explicit LabelWords(const LabelSet& labels);
  // A name of the set is a label's own, or one of the same number, as 1 is of 1.0. kUnknownLabel for a row without a
  // label. UserError, with file and line: a label that is not of the set.
  std::int32_t of(const Row& row, const Table& table) const;

  bool has(std::string_view label) const { return find(label).has_value(); }  // a set of names

 private:
  std::optional<std::int32_t> find(std::string_view label) const;

  const LabelSet labels_;
  std::vector<std::pair<std::string_view, std::int32_t>> sorted_;  // views of labels_
  std::vector<std::pair<double, std::int32_t>> numbers_;           // of names that are some, sorted
};

// Labels of rows and those that are predicted for them, as words of one set: numbers, or the names that are predicted
// and those of rows that are none of them.
struct LabelPairs {
  LabelSet set;
  std::vector<std::int32_t> labels, said;
  std::int64_t unlabelled = 0;  // rows without a label

  std::int64_t labelled() const { return std::ssize(labels) - unlabelled; }
};
// `said`: a row for each of `table`. UserError: no row of `table` has a label; as LabelWords.
LabelPairs label_pairs(const Table& table, const Table& said, bool are_numbers = false);

// Removes the rows without a label, as `labels` has them, and returns how many there were.
std::int64_t leave_out_unlabelled(Table& table, std::vector<std::int32_t>& labels);

}  // namespace teratron::classify
