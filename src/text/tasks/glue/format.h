// GLUE's files of sentence pairs (Wang et al., arXiv 1804.07461): MNLI's and QQP's data, and predictions as the
// benchmark's site takes them.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace teratron::glue {

enum class Task { kMnli, kQqp };

// MNLI's labels as in Hugging Face's data sets, in Megatron-LM's order.
inline constexpr std::array<std::string_view, 3> kMnliLabels = {"contradiction", "entailment", "neutral"};
// The labels in GLUE's files, in the order of their numbers. QQP's are 0 and 1.
std::span<const std::string_view> labels_of(Task task);

struct Pair {
  std::string first, second;  // MNLI: premise, hypothesis
  std::optional<int> label;   // its number; empty in a test set, whose labels the benchmark keeps
  std::int64_t index = 0;     // row of the file, from 0, with skipped rows, as in predictions
};

struct Skipped {
  std::int64_t without_gold = 0;   // MNLI: annotators did not agree, written "-"
  std::int64_t wrong_columns = 0;  // QQP: its training set has some such rows
  std::int64_t empty = 0;          // a sentence of the pair is blank
};

struct Dataset {
  Task task = Task::kMnli;
  std::vector<Pair> pairs;
  std::int64_t rows = 0;  // of the file, with skipped ones; without the header and blank lines
  Skipped skipped;
};

// Reads tab-separated values, plain or compressed, in which quotes are text. GLUE's train.tsv, dev*.tsv and test*.tsv
// begin with a header that names the columns; MNLI may also be label, premise and hypothesis without a header. A file
// without a label column has no labels. UserError, with the line: another header; an unknown label; MNLI: another
// number of columns. UserError too: no pair is left.
Dataset read_dataset(const std::filesystem::path& path, Task task);

// Counts the pairs of each label, in the order of labels_of. Pairs without a label are not counted.
std::vector<std::int64_t> count_labels(const Dataset& dataset);

// Label by index of row.
using Predictions = std::map<std::int64_t, int>;

// Reads index<TAB>prediction with that header, labels by name. UserError, with the line: another header or number of
// columns, no index, an unknown label, an index that occurs twice.
Predictions read_predictions(const std::filesystem::path& path, Task task);

// Writes that format, whole or not at all. EnvironmentError: it cannot be written.
void write_predictions(const std::filesystem::path& path, const Predictions& predictions, Task task);

}  // namespace teratron::glue
