// The task embed: vectors of texts, learned from pairs that belong together or from similarities. Its files are tables,
// as those of classify.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>

#include "base/ascii.h"
#include "base/counted.h"
#include "base/error.h"
#include "tasks/custom/labels.h"
#include "tasks/custom/metrics.h"
#include "tasks/custom/predictions.h"
#include "tasks/custom/table.h"
#include "tasks/embed/scores.h"
#include "tasks/pair_encoding.h"
#include "tasks/task.h"
#include "tasks/task_entry.h"

namespace teratron::embed {
namespace {

namespace fs = std::filesystem;
using custom::Row;
using custom::Table;

const LabelSet kSimilarities{.are_numbers = true};
constexpr double kMostCosine = 1.001;  // with its rounding

std::vector<TaskScore> scores_of_similarities(const std::vector<double>& labels, const std::vector<double>& cosines) {
  const custom::NumberMetrics metrics = custom::number_metrics(labels, cosines);
  return {{"spearman", 100 * metrics.spearman}, {"pearson", 100 * metrics.pearson}};
}

class PairedTexts : public TaskSet {
 public:
  PairedTexts(Table table, const Tokenizer& tokenizer, const TaskReading& reading, bool training)
      : texts_(reading.negative_column.empty() ? 2 : 3) {
    examples_.sequences_each = texts_;
    const bool are_similarities = reading.labels.are_numbers;
    examples_.are_negatives = training && !are_similarities;
    if (!training || are_similarities) read_similarities(table);
    const std::int64_t left_out =
        training && are_similarities ? custom::leave_out_unlabelled(table, examples_.labels) : 0;
    if (training && table.rows.empty()) throw_unlabelled(left_out, "pair");
    // Every pair to rank weighs as much as any other.
    if (training && !are_similarities) examples_.labels.assign(table.rows.size(), 0);
    encode(table, tokenizer, reading);
    notes_ += note_of(left_out, "", "without a similarity left out");
    if (has_similarities()) {
      notes_ += note_of(std::ranges::count(examples_.labels, kUnknownLabel), "", "without a similarity");
    } else if (!training) {
      notes_ += "; no similarities, so second texts are searched for";
    }
  }

  bool has_labels() const override { return examples_.count() > 0; }

  std::vector<TaskScore> scores(const TaskOutputValues& outputs) const override {
    check_sizes(outputs);
    if (!has_similarities()) {
      const Retrieval found = retrieval(outputs, examples_);
      return {{"retrieval_accuracy", 100 * found.accuracy}, {"mean_reciprocal_rank", 100 * found.reciprocal_rank}};
    }
    const std::vector<double> all = cosines(outputs, texts_);
    std::vector<double> labels, predicted;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (examples_.labels[i] == kUnknownLabel) continue;
      labels.push_back(static_cast<double>(number_of_label(examples_.labels[i])));
      predicted.push_back(all[i]);
    }
    return scores_of_similarities(labels, predicted);
  }

  void write_predictions(const fs::path& path, const TaskOutputValues& outputs) const override {
    check_sizes(outputs);
    TaskOutputValues numbers;
    for (const double cosine : cosines(outputs, texts_)) numbers.push_back({static_cast<float>(cosine)});
    custom::write_predictions(path, numbers, kSimilarities);
  }

 private:
  bool has_similarities() const {
    const auto is_number = [](std::int32_t label) { return label != kUnknownLabel; };
    return !examples_.are_negatives && std::ranges::any_of(examples_.labels, is_number);
  }

  void check_sizes(const TaskOutputValues& outputs) const {
    const auto first = outputs.empty() ? 0 : std::ssize(outputs.front());
    check_outputs(outputs, examples_.count(), [&](std::int64_t) { return first; });
    check(first % texts_ == 0, "a vector of each text");
  }

  void read_similarities(const Table& table) {
    const custom::LabelWords words(kSimilarities);
    for (const Row& row : table.rows) examples_.labels.push_back(words.of(row, table));
  }

  void encode(const Table& table, const Tokenizer& tokenizer, const TaskReading& reading) {
    const TextFrame frame = frame_of_pairs(tokenizer, reading.seq_length, /*has_second=*/false);
    const auto most = static_cast<std::size_t>(reading.seq_length - TextFrame::kTokensOfOne);
    const TokenLists all = encode_texts(
        tokenizer, std::ssize(table.rows) * texts_, [&](std::size_t i) -> auto& {
          const Row& row = table.rows[i / static_cast<std::size_t>(texts_)];
          const std::size_t text = i % static_cast<std::size_t>(texts_);
          return text == 0 ? row.text : text == 1 ? row.pair : row.negative;
        });
    std::vector<TokenPair> sequences;
    std::int64_t cut = 0, empty = 0;
    for (const std::vector<std::int32_t>& ids : all) {
      if (ids.empty()) ++empty;
      if (ids.size() > most) ++cut;
      sequences.push_back({.a = std::span(ids).first(std::min(ids.size(), most)), .b = {}});
    }
    write_sequences(sequences, frame, examples_, /*has_second=*/false);
    notes_ = counted(std::ssize(table.rows), texts_ == 2 ? "pair of texts" : "triple of texts",
                     texts_ == 2 ? "pairs of texts" : "triples of texts") +
             note_of(cut, "text", fmt::format("cut to {} tokens", reading.seq_length)) + note_of(empty, "empty text");
  }

  const std::int64_t texts_;
};

std::unique_ptr<TaskSet> open_pairs(std::span<const fs::path> files, const Tokenizer& tokenizer,
                                    const TaskReading& reading, bool training) {
  custom::Columns columns = custom::columns_of(reading);
  if (columns.pair.empty()) columns.pair = "pair";
  return std::make_unique<PairedTexts>(custom::read_table(files, columns), tokenizer, reading, training);
}

// Refuses pairs without similarities where another column seems to hold them: all pairs would belong together.
void require_no_similarities(const Table& table, const std::string& column) {
  constexpr std::array kUsual = {"score", "similarity", "similarity_score", "relatedness_score", "sim", "labels"};
  const auto is_one = [&](const std::string& name) {
    std::string plain;
    for (const char letter : name) {
      if (letter != ' ') plain += ascii_lower(letter);
    }
    return name != column && (plain == column || std::ranges::count(kUsual, plain) > 0);
  };
  const auto other = std::ranges::find_if(table.columns, is_one);
  if (column == TaskReading().label_column && other == table.columns.end()) return;
  throw_user_error(
      "no pair of '{}' has a similarity under '{}'{}; name their column with --label-column, or, to learn from pairs "
      "that belong together, leave it out with --label-column=",
      table.files.front().string(), column,
      table.columns.empty() ? "" : fmt::format(" (there are {})", fmt::join(table.columns, ", ")));
}

// Whether the files have similarities to learn. UserError: one that no cosine can have.
LabelSet similarities_of_files(std::span<const fs::path> files, const TaskReading& reading) {
  LabelSet found;
  const Table table = custom::read_table(files, {.label = reading.label_column});
  for (const Row& row : table.rows) {
    if (row.label.empty()) continue;
    const std::optional<double> number = custom::number_of(row.label);
    if (!number || std::abs(*number) > 1) {
      throw_user_error(
          "{}: '{}' is no similarity to learn, which is a number from -1 to 1; scale the column, or, to learn from "
          "pairs that belong together, leave it out with --label-column=",
          table.place(row), row.label);
    }
    found.are_numbers = true;
  }
  if (!found.are_numbers && !reading.label_column.empty()) require_no_similarities(table, reading.label_column);
  if (found.are_numbers && !reading.negative_column.empty()) {
    throw_user_error(
        "--negative-column names texts that do not belong to a pair, and the pairs of '{}' have similarities in "
        "'{}'; learn from one of both (--label-column= leaves similarities out)",
        files.front().string(), reading.label_column);
  }
  return found;
}

ScoreReport score_similarities(std::span<const fs::path> data, const fs::path& predictions,
                               const TaskReading& reading) {
  const Table table = custom::read_table(data, {.label = reading.label_column});
  const custom::Predictions predicted = custom::read_predictions(predictions, table.rows.size(), kMostCosine);
  if (!predicted.are_numbers) {
    throw_user_error("'{}' has labels, where `eval embed` writes similarities", predictions.string());
  }
  const custom::LabelWords words(kSimilarities);
  std::vector<double> labels, cosines;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::int32_t label = words.of(table.rows[i], table);
    if (label == kUnknownLabel) continue;
    labels.push_back(static_cast<double>(number_of_label(label)));
    const double cosine = custom::number_of(predicted.values[i]).value();
    cosines.push_back(static_cast<double>(static_cast<float>(cosine)));  // as it was before it was written
  }
  if (labels.empty()) {
    throw_user_error("the data have no similarities to score by; name their column with --label-column");
  }
  return custom::report_of(scores_of_similarities(labels, cosines), std::ssize(labels),
                           std::ssize(table.rows) - std::ssize(labels), "similarity");
}

}  // namespace
}  // namespace teratron::embed

namespace teratron {

// Batch, learning rate, epochs and weight decay are those of Sentence-BERT's fine-tuning (arXiv 1908.10084,
// section 3.1: batches of 16, 2e-5, one epoch on a million pairs), with a batch of 32, whose other pairs are the
// negatives, and as many epochs as BERT's tasks take.
constinit const TaskEntry kEmbedTask = complete({
    .name = "embed",
    .ability = "makes vectors of texts whose cosines tell what belongs together, from pairs of your own",
    .shape = {TaskOutputs::kVectors, 2},
    .seq_length = 128,
    .predictions_extension = ".jsonl",
    .paper = bert_fine_tuning(2e-5),
    .open = embed::open_pairs,
    .scoring =
        {
            .summary = "scores similarities that `eval embed` has predicted",
            .data = "your .csv, .tsv, .jsonl or .parquet with similarities",
            .predictions = "JSON lines: {\"index\": row, \"number\": cosine}",
            .score = embed::score_similarities,
        },
    .labels_in_files = embed::similarities_of_files,
});

}  // namespace teratron
