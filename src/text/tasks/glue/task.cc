// MNLI and QQP: pairs as sequences, the labels of a model's outputs, and the entries of both tasks.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "tasks/glue/format.h"
#include "tasks/glue/score.h"
#include "tasks/pair_encoding.h"
#include "tasks/task.h"
#include "tasks/task_entry.h"

namespace teratron::glue {
namespace {

namespace fs = std::filesystem;

Dataset read_files(std::span<const fs::path> files, Task task) {
  Dataset all{.task = task};
  for (const fs::path& file : files) {
    Dataset one = read_dataset(file, task);
    for (Pair& pair : one.pairs) {
      pair.index += all.rows;
      all.pairs.push_back(std::move(pair));
    }
    all.rows += one.rows;
    all.skipped.without_gold += one.skipped.without_gold;
    all.skipped.wrong_columns += one.skipped.wrong_columns;
    all.skipped.empty += one.skipped.empty;
  }
  return all;
}

class PairSet : public TaskSet {
 public:
  PairSet(Dataset data, const Tokenizer& tokenizer, const TaskReading& reading, bool training)
      : data_(std::move(data)) {
    const TextFrame frame = frame_of_pairs(tokenizer, reading.seq_length);
    if (training) leave_out_unlabelled();
    const std::int64_t count = std::ssize(data_.pairs);
    const TokenLists first = encode_texts(
        tokenizer, count, [&](std::size_t i) -> auto& { return pair(i).first; });
    const TokenLists second = encode_texts(
        tokenizer, count, [&](std::size_t i) -> auto& { return pair(i).second; });
    std::vector<TokenPair> pairs;
    std::int64_t cut = 0;
    for (std::size_t i = 0; i < data_.pairs.size(); ++i) {
      pairs.push_back({.a = first[i], .b = second[i]});
      if (cut_longer_side(pairs.back(), reading.seq_length - frame.tokens_of_two())) ++cut;
      examples_.labels.push_back(pair(i).label.value_or(-1));
      data_.pairs[i].first = data_.pairs[i].second = {};  // only labels and rows are needed later
    }
    write_sequences(pairs, frame, examples_);
    notes_ = counted(count, "pair") + note_of(cut, "", fmt::format("cut to {} tokens", reading.seq_length)) +
             notes_of_rows();
  }

  bool has_labels() const override {
    return std::ranges::all_of(data_.pairs, [](const Pair& each) { return each.label.has_value(); });
  }

  std::vector<TaskScore> scores(const TaskOutputValues& outputs) const override {
    check(has_labels(), "scores of pairs without labels");
    const Scores all = score(data_, predictions(outputs));
    std::vector<TaskScore> list = {{"accuracy", all.accuracy}};
    if (data_.task == Task::kQqp) list.push_back({"f1", all.f1});
    return list;
  }

  void write_predictions(const fs::path& path, const TaskOutputValues& outputs) const override {
    Predictions rows = predictions(outputs);
    for (std::int64_t row = 0; row < data_.rows; ++row) rows.emplace(row, 0);
    glue::write_predictions(path, rows, data_.task);
  }

 private:
  const Pair& pair(std::size_t i) const { return data_.pairs[i]; }

  void leave_out_unlabelled() {
    unlabelled_ = static_cast<std::int64_t>(std::erase_if(data_.pairs, [](const Pair& each) { return !each.label; }));
    if (data_.pairs.empty()) throw_unlabelled(unlabelled_, "pair");
  }

  std::string notes_of_rows() const {
    std::string notes = note_of(unlabelled_, "", "without a label left out");
    notes += note_of(data_.skipped.without_gold, "row", "left out, because their annotators did not agree (-)");
    notes += note_of(data_.skipped.wrong_columns, "row", "left out, because they have a wrong number of columns");
    notes += note_of(data_.skipped.empty, "row", "left out, because a sentence is empty");
    if (!has_labels()) return notes + "; no labels";
    const std::vector<std::int64_t> counts = count_labels(data_);
    for (std::size_t label = 0; label < counts.size(); ++label) {
      if (counts[label] == 0) notes += fmt::format("; no pair is labelled {}", labels_of(data_.task)[label]);
    }
    return notes;
  }

  Predictions predictions(const TaskOutputValues& outputs) const {
    const std::int64_t labels = std::ssize(labels_of(data_.task));
    check_outputs(outputs, examples_.count(), [&](std::int64_t) { return labels; });
    Predictions rows;
    for (std::size_t i = 0; i < outputs.size(); ++i) rows.emplace(pair(i).index, index_of_largest(outputs[i]));
    return rows;
  }

  Dataset data_;  // without texts
  std::int64_t unlabelled_ = 0;
};

template <Task task>
std::unique_ptr<TaskSet> open_pairs(std::span<const fs::path> files, const Tokenizer& tokenizer,
                                    const TaskReading& reading, bool training) {
  return std::make_unique<PairSet>(read_files(files, task), tokenizer, reading, training);
}

constexpr std::array<std::string_view, 2> kQqpLabelNames = {"not_duplicate", "duplicate"};

// Notes on rows that are left out or count as wrong, and labels without a pair.
std::string notes_of(const Dataset& dataset, const Scores& scores) {
  std::string text;
  const auto note = [&](std::int64_t count, const char* noun, const char* what) {
    if (count > 0) text += fmt::format("{} {}\n", counted(count, noun), what);
  };
  note(scores.without_prediction, "pair", "without a prediction, which counts as wrong");
  note(dataset.skipped.without_gold, "row", "left out, because their annotators did not agree (-)");
  note(dataset.skipped.wrong_columns, "row", "left out, because they have a wrong number of columns");
  note(dataset.skipped.empty, "row", "left out, because a sentence is empty");
  const auto counts = count_labels(dataset);
  for (std::size_t label = 0; label < counts.size(); ++label) {
    if (counts[label] == 0) text += fmt::format("no pair is labelled {}\n", labels_of(dataset.task)[label]);
  }
  return text;
}

template <Task task>
ScoreReport score_pairs(std::span<const std::filesystem::path> data, const std::filesystem::path& predictions,
                        const TaskReading& /*reading*/) {
  const Dataset dataset = read_files(data, task);
  const Scores scores = score(dataset, read_predictions(predictions, task));
  std::string text = fmt::format("{}   accuracy {:.4f}", counted(scores.pairs, "pair"), scores.accuracy);
  nlohmann::ordered_json json = {{"pairs", scores.pairs}, {"accuracy", scores.accuracy}};
  if (task == Task::kQqp) {
    text += fmt::format("   F1 {:.4f}", scores.f1);
    json["f1"] = scores.f1;
  }
  json["without_prediction"] = scores.without_prediction;
  json["skipped"] = {{"without_gold", dataset.skipped.without_gold},
                     {"wrong_columns", dataset.skipped.wrong_columns},
                     {"empty", dataset.skipped.empty}};
  return {.text = text + "\n" + notes_of(dataset, scores), .json = json.dump()};
}

constexpr TaskScoring pair_scoring(Task task) {
  const bool is_mnli = task == Task::kMnli;
  return {.summary = is_mnli ? "scores labels of MNLI by accuracy, matched or mismatched"
                             : "scores labels of QQP by accuracy and F1",
          .data = "GLUE's .tsv with labels; of MNLI also label, premise, hypothesis",
          .predictions = "as GLUE's site takes them: index<TAB>prediction, a header first",
          .score = is_mnli ? score_pairs<Task::kMnli> : score_pairs<Task::kQqp>};
}

}  // namespace
}  // namespace teratron::glue

namespace teratron {

constinit const TaskEntry kMnliTask = complete({
    .name = "mnli",
    .ability = "classifies whether a text follows from another (MNLI)",
    .shape = {TaskOutputs::kLabels, std::size(glue::kMnliLabels)},
    .labels = glue::kMnliLabels,
    .seq_length = 128,
    .predictions_extension = ".tsv",
    .paper =
        {
            .batch = {128, 128, 128},
            .learning_rate = {1e-5, 1e-5, 1e-5},
            .epochs = 10,
            .weight_decay = 0.1,
            .search_rates = kRobertaSearchRates,
        },
    .open = glue::open_pairs<glue::Task::kMnli>,
    .scoring = glue::pair_scoring(glue::Task::kMnli),
});

constinit const TaskEntry kQqpTask = complete({
    .name = "qqp",
    .ability = "classifies whether two questions ask the same (QQP)",
    .shape = {TaskOutputs::kLabels, std::size(glue::kQqpLabelNames)},
    .labels = glue::kQqpLabelNames,
    .seq_length = 128,
    .predictions_extension = ".tsv",
    .paper =
        {
            .batch = {128, 128, 256},
            .learning_rate = {5e-5, 3e-5, 4e-5},
            .epochs = 12,
            .weight_decay = 0.1,
            .search_rates = kRobertaSearchRates,
        },
    .open = glue::open_pairs<glue::Task::kQqp>,
    .scoring = glue::pair_scoring(glue::Task::kQqp),
});

}  // namespace teratron
