// The task classify: texts, or pairs of them, with labels or numbers from users' own files.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <ranges>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "tasks/custom/labels.h"
#include "tasks/custom/metrics.h"
#include "tasks/custom/predictions.h"
#include "tasks/custom/table.h"
#include "tasks/pair_encoding.h"
#include "tasks/task.h"
#include "tasks/task_entry.h"

namespace teratron::classify {
namespace {

namespace fs = std::filesystem;
using custom::Row;
using custom::Table;

std::vector<TaskScore> scores_of(const custom::LabelMetrics& metrics) {
  return {
      {"accuracy", 100 * metrics.accuracy}, {"f1_macro", 100 * metrics.f1_macro}, {"matthews", 100 * metrics.matthews}};
}

std::vector<TaskScore> scores_of(const custom::NumberMetrics& metrics) {
  return {{"spearman", 100 * metrics.spearman},
          {"pearson", 100 * metrics.pearson},
          {"mean_squared_error", metrics.mean_squared_error}};
}

// Scores of the rows that have a label. Both lists have words as TaskExamples::labels.
std::vector<TaskScore> scores_of(const LabelSet& set, const std::vector<std::int32_t>& labels,
                                 const std::vector<std::int32_t>& predicted) {
  std::vector<std::int32_t> known, said;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kUnknownLabel) continue;
    known.push_back(labels[i]);
    said.push_back(predicted[i]);
  }
  if (!set.are_numbers) return scores_of(custom::label_metrics(known, said, std::ssize(set.names)));
  const auto numbers = [](const std::vector<std::int32_t>& words) {
    const auto all = std::views::transform(words, [](std::int32_t word) { return double{number_of_label(word)}; });
    return std::vector<double>(all.begin(), all.end());
  };
  return scores_of(custom::number_metrics(numbers(known), numbers(said)));
}

class LabelledTexts : public TaskSet {
 public:
  LabelledTexts(Table table, const Tokenizer& tokenizer, const TaskReading& reading, bool training)
      : labels_(reading.labels.empty() ? custom::labels_in(table, reading.label_kind) : reading.labels) {
    const custom::LabelWords words(labels_);
    for (const Row& row : table.rows) examples_.labels.push_back(words.of(row, table));
    const std::int64_t left_out = training ? custom::leave_out_unlabelled(table, examples_.labels) : 0;
    if (training && table.rows.empty()) throw_unlabelled(left_out, "text");
    encode(table, tokenizer, reading);
    notes_ += note_of(left_out, "", "without a label left out");
    add_label_notes();
  }

  bool has_labels() const override { return known() > 0; }

  std::vector<TaskScore> scores(const TaskOutputValues& outputs) const override {
    check(has_labels(), "scores of texts without labels");
    check_sizes(outputs);
    std::vector<std::int32_t> predicted;
    for (const std::vector<float>& one : outputs) {
      predicted.push_back(labels_.are_numbers ? label_of_number(one.front()) : index_of_largest(one));
    }
    return scores_of(labels_, examples_.labels, predicted);
  }

  void write_predictions(const fs::path& path, const TaskOutputValues& outputs) const override {
    check_sizes(outputs);
    custom::write_predictions(path, outputs, labels_);
  }

 private:
  std::int64_t known() const {
    return std::ssize(examples_.labels) - std::ranges::count(examples_.labels, kUnknownLabel);
  }

  void check_sizes(const TaskOutputValues& outputs) const {
    const std::int64_t each = labels_.are_numbers ? 1 : std::ssize(labels_.names);
    check_outputs(outputs, examples_.count(), [&](std::int64_t) { return each; });
  }

  void encode(const Table& table, const Tokenizer& tokenizer, const TaskReading& reading) {
    const bool has_pairs = !reading.pair_column.empty();
    const TextFrame frame = frame_of_pairs(tokenizer, reading.seq_length, has_pairs);
    const std::int64_t count = std::ssize(table.rows);
    const TokenLists first = encode_texts(
        tokenizer, count, [&](std::size_t i) -> auto& { return table.rows[i].text; });
    const TokenLists second = encode_texts(
        tokenizer, count, [&](std::size_t i) -> auto& { return table.rows[i].pair; });
    const std::int64_t most = reading.seq_length - (has_pairs ? frame.tokens_of_two() : TextFrame::kTokensOfOne);
    std::vector<TokenPair> texts;
    std::int64_t cut = 0, empty = 0;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      texts.push_back({.a = first[i], .b = second[i]});
      if (first[i].empty() || (has_pairs && second[i].empty())) ++empty;
      if (cut_longer_side(texts.back(), most)) ++cut;
    }
    write_sequences(texts, frame, examples_, has_pairs);
    notes_ = counted(count, has_pairs ? "pair" : "text") +
             note_of(cut, "", fmt::format("cut to {} tokens", reading.seq_length)) +
             note_of(empty, has_pairs ? "" : "empty text", has_pairs ? "with an empty text" : "");
  }

  void add_label_notes() {
    if (!has_labels()) {
      notes_ += "; no labels";
      return;
    }
    notes_ += note_of(std::ssize(examples_.labels) - known(), "", "without a label");
    if (labels_.are_numbers) {
      notes_ += "; labels are numbers";
      return;
    }
    std::vector<std::int64_t> counts(labels_.names.size());
    for (const std::int32_t label : examples_.labels) {
      if (label != kUnknownLabel) ++counts[static_cast<std::size_t>(label)];
    }
    constexpr std::size_t kShown = 20;
    for (std::size_t label = 0; label < std::min(counts.size(), kShown); ++label) {
      notes_ += fmt::format("; {} {}", counts[label], labels_.names[label]);
    }
    if (counts.size() > kShown) notes_ += fmt::format("; and {} other labels", counts.size() - kShown);
  }

  const LabelSet labels_;
};

std::unique_ptr<TaskSet> open_texts(std::span<const fs::path> files, const Tokenizer& tokenizer,
                                    const TaskReading& reading, bool training) {
  return std::make_unique<LabelledTexts>(custom::read_table(files, custom::columns_of(reading)), tokenizer, reading,
                                         training);
}

LabelSet labels_of_files(std::span<const fs::path> files, const TaskReading& reading) {
  return custom::labels_in(custom::read_table(files, {.label = reading.label_column}), reading.label_kind);
}

// Compares labels with labels or numbers with numbers, as the predictions are.
ScoreReport score_texts(std::span<const fs::path> data, const fs::path& predictions, const TaskReading& reading) {
  const Table table = custom::read_table(data, {.label = reading.label_column});
  custom::Predictions predicted = custom::read_predictions(predictions, table.rows.size());
  Table said = table;
  for (std::size_t i = 0; i < said.rows.size(); ++i) said.rows[i].label = std::move(predicted.values[i]);
  const custom::LabelPairs pairs =
      custom::label_pairs(table, said, predicted.are_numbers ? LabelKind::kNumbers : reading.label_kind);
  return custom::report_of(scores_of(pairs.set, pairs.labels, pairs.said), pairs.labelled(), pairs.unlabelled, "label");
}

}  // namespace
}  // namespace teratron::classify

namespace teratron {

constinit const TaskEntry kClassifyTask = complete({
    .name = "classify",
    .ability = "tells labels or numbers of texts or pairs of them, from files of your own",
    .shape = {TaskOutputs::kLabels, 0},
    .seq_length = 128,
    .predictions_extension = ".jsonl",
    .paper = bert_fine_tuning(2e-5),
    .open = classify::open_texts,
    .scoring =
        {
            .summary = "scores labels or numbers that `eval classify` has predicted",
            .data = "your .csv, .tsv, .jsonl or .parquet with labels",
            .predictions = "JSON lines: {\"index\": row, \"label\": name} or {\"index\": row, \"number\": x}",
            .score = classify::score_texts,
        },
    .has_labels_of_files = true,
    .labels_in_files = classify::labels_of_files,
});

}  // namespace teratron
