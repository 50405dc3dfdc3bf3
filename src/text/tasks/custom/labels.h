// Labels of users' own files: names, whose set the training files decide, or numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tasks/custom/table.h"

namespace teratron::custom {

// Parses a text that is a number and nothing else; nullopt: it is none, or none that is finite in fp32.
std::optional<double> number_of(std::string_view text);

// The labels of a table to train on. Names are sorted: by value where all are whole numbers, else by their bytes. By
// LabelKind::kAuto labels are numbers where all are, and one has a fraction; whole numbers of one value, as 1, 1.0 and
// 01, are one label with the shortest of these names. UserError: no label; all labels have the same name; a label that
// is no number, by LabelKind::kNumbers, or by LabelKind::kAuto if another one has a fraction (with file and line).
LabelSet labels_in(const Table& table, LabelKind kind);

// Converts labels of one set to the 32-bit words of TaskExamples::labels.
class LabelWords {
 public:
  explicit LabelWords(const LabelSet& labels);
  // Word of a row's label, by its name or a name of the same number (1 for 1.0); kUnknownLabel: the row has none.
  // UserError, with file and line: a label that is not of the set.
  std::int32_t of(const Row& row, const Table& table) const;

  bool has(std::string_view label) const { return find(label).has_value(); }  // a set of names

 private:
  std::optional<std::int32_t> find(std::string_view label) const;

  const LabelSet labels_;
  std::vector<std::pair<std::string_view, std::int32_t>> sorted_;  // views of labels_
  std::vector<std::pair<double, std::int32_t>> numbers_;           // of names that are numbers, sorted
};

// True and predicted labels of the same rows, as words of one set: numbers, or the predicted names with those true
// names that equal none of them.
struct LabelPairs {
  LabelSet set;
  std::vector<std::int32_t> labels, said;
  std::int64_t unlabelled = 0;  // rows without a label

  std::int64_t labelled() const { return std::ssize(labels) - unlabelled; }
};
// `said`: a row for each of `table`. `kind`: of both; kAuto has names, of which equal numbers are one, as labels_in()
// has them. UserError: no row of `table` has a label; as LabelWords.
LabelPairs label_pairs(const Table& table, const Table& said, LabelKind kind);

// Removes the rows whose word in `labels` is kUnknownLabel, and these words. Returns their number.
std::int64_t leave_out_unlabelled(Table& table, std::vector<std::int32_t>& labels);

}  // namespace teratron::custom
