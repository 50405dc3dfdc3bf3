#include "tasks/glue/pairs.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tasks/glue/score.h"
#include "tasks/outputs.h"
#include "tasks/pair_encoding.h"

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
    const PairFrame frame = frame_of_pairs(tokenizer, reading.seq_length);
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
      if (cut_longer_side(pairs.back(), reading.seq_length - kFrameTokens)) ++cut;
      examples_.labels.push_back(pair(i).label.value_or(-1));
      data_.pairs[i].first = data_.pairs[i].second = {};  // what comes later needs labels and rows alone
    }
    write_sequences(pairs, frame, examples_);
    notes_ = fmt::format("{} pairs", count) + note_of(cut, fmt::format("cut to {} tokens", reading.seq_length)) +
             notes_of_rows();
  }

  const TaskExamples& examples() const override { return examples_; }
  std::string notes() const override { return notes_; }

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
    unlabelled_ = std::erase_if(data_.pairs, [](const Pair& each) { return !each.label; });
    if (data_.pairs.empty()) {
      throw_user_error("none of the {} pairs to train on has a label; a test set is none to train on", unlabelled_);
    }
  }

  std::string notes_of_rows() const {
    std::string notes =
        note_of(std::ssize(data_.pairs) == 0 ? 0 : static_cast<std::int64_t>(unlabelled_), "without a label left out");
    notes += note_of(data_.skipped.without_gold, "rows left out, because their annotators did not agree (-)");
    notes += note_of(data_.skipped.wrong_columns, "rows left out, because they have a wrong number of columns");
    notes += note_of(data_.skipped.empty, "rows left out, because a sentence is empty");
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
    for (std::size_t i = 0; i < outputs.size(); ++i) rows.emplace(pair(i).index, place_of_largest(outputs[i]));
    return rows;
  }

  Dataset data_;  // without texts
  TaskExamples examples_;
  std::size_t unlabelled_ = 0;
  std::string notes_;
};

}  // namespace

std::unique_ptr<TaskSet> open_pairs(Task task, std::span<const fs::path> files, const Tokenizer& tokenizer,
                                    const TaskReading& reading, bool training) {
  return std::make_unique<PairSet>(read_files(files, task), tokenizer, reading, training);
}

}  // namespace teratron::glue
