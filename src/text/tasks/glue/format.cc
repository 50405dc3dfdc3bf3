#include "tasks/glue/format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/decompression.h"
#include "base/files/file.h"
#include "data/text/content.h"
#include "data/text/document_reader.h"
#include "data/text/input_files.h"
#include "tasks/delimited.h"

namespace teratron::glue {
namespace {

namespace fs = std::filesystem;

// QQP's files use numbers as labels.
constexpr std::array<std::string_view, 2> kQqpLabels = {"0", "1"};
constexpr std::string_view kWithoutGold = "-";

std::optional<int> label_of(std::string_view name, Task task) {
  const auto labels = labels_of(task);
  const auto found = std::ranges::find(labels, name);
  if (found == labels.end()) return {};
  return static_cast<int>(found - labels.begin());
}

// The rows of a file that are not blank.
class TabSeparatedFile {
 public:
  explicit TabSeparatedFile(const fs::path& path)
      : path_(path), text_(read_decompressed(path)), rows_(text_, Delimiter::kTab, path) {}
  TabSeparatedFile(const TabSeparatedFile&) = delete;
  TabSeparatedFile& operator=(const TabSeparatedFile&) = delete;

  bool next() {
    while (rows_.next()) {
      if (!std::ranges::all_of(cells(), is_blank)) return true;
    }
    return false;
  }

  // The cells of the current row.
  const std::vector<std::string>& cells() const { return rows_.cells(); }
  std::optional<std::size_t> column(std::string_view name) const {
    const auto found = std::ranges::find(cells(), name);
    if (found == cells().end()) return {};
    return static_cast<std::size_t>(found - cells().begin());
  }

  std::string name() const { return name_of_input(path_); }
  template <class... Args>
  [[noreturn]] void throw_here(fmt::format_string<Args...> format, Args&&... args) const {
    throw_user_error("{}: {}", place_of(path_, rows_.line()), fmt::format(format, std::forward<Args>(args)...));
  }
  int label(std::string_view name, Task task) const {
    const std::optional<int> label = label_of(name, task);
    if (!label) throw_here("'{}' is none of the labels {}", name, fmt::join(labels_of(task), ", "));
    return *label;
  }

 private:
  fs::path path_;
  std::string text_;
  DelimitedReader rows_;
};

class PairReader {
 public:
  PairReader(const fs::path& path, Task task) : file_(path) { data_.task = task; }

  Dataset read() {
    if (!file_.next()) throw_user_error("{} is empty", file_.name());
    if (!take_header()) {
      take_plain_columns();
      add_row();
    }
    while (file_.next()) add_row();
    if (data_.pairs.empty()) {
      const auto& [without_gold, wrong_columns, empty] = data_.skipped;
      throw_user_error(
          "{} holds no pair of sentences that can be used: of {} {} have the label '{}', {} a wrong "
          "number of columns and {} an empty sentence",
          file_.name(), counted(data_.rows, "row"), without_gold, kWithoutGold, wrong_columns, empty);
    }
    return std::move(data_);
  }

 private:
  bool is_mnli() const { return data_.task == Task::kMnli; }

  bool take_header() {
    const auto first = file_.column(is_mnli() ? "sentence1" : "question1");
    const auto second = file_.column(is_mnli() ? "sentence2" : "question2");
    if (!first || !second) return false;
    columns_ = file_.cells().size();
    first_ = *first;
    second_ = *second;
    label_ = file_.column(is_mnli() ? "gold_label" : "is_duplicate");
    return true;
  }

  void take_plain_columns() {
    if (!is_mnli()) file_.throw_here("the columns' names are missing; a header with question1 and question2 is needed");
    columns_ = 3;
    const auto& cells = file_.cells();
    if (cells.size() != columns_ || (cells[0] != kWithoutGold && !label_of(cells[0], Task::kMnli))) {
      file_.throw_here(
          "this is neither a header with sentence1 and sentence2 nor a label ({}), a premise and a hypothesis, parted "
          "by tabs",
          fmt::join(labels_of(Task::kMnli), ", "));
    }
    label_ = 0;
    first_ = 1;
    second_ = 2;
  }

  void add_row() {
    const std::int64_t index = data_.rows++;
    const auto& cells = file_.cells();
    if (cells.size() != columns_) {
      if (is_mnli())
        file_.throw_here("{}, where the first line has {}", counted(std::ssize(cells), "column"), columns_);
      ++data_.skipped.wrong_columns;
      return;
    }
    if (is_mnli() && label_ && cells[*label_] == kWithoutGold) {
      ++data_.skipped.without_gold;
      return;
    }
    Pair pair{.first = cells[first_], .second = cells[second_], .label = {}, .index = index};
    if (label_) pair.label = file_.label(cells[*label_], data_.task);
    if (is_blank(pair.first) || is_blank(pair.second)) {
      ++data_.skipped.empty;
      return;
    }
    data_.pairs.push_back(std::move(pair));
  }

  TabSeparatedFile file_;
  Dataset data_;
  std::size_t columns_ = 0, first_ = 0, second_ = 0;
  std::optional<std::size_t> label_;
};

}  // namespace

std::span<const std::string_view> labels_of(Task task) {
  if (task == Task::kQqp) return kQqpLabels;
  return kMnliLabels;
}

Dataset read_dataset(const fs::path& path, Task task) { return PairReader(path, task).read(); }

std::vector<std::int64_t> count_labels(const Dataset& dataset) {
  std::vector<std::int64_t> counts(labels_of(dataset.task).size());
  for (const Pair& pair : dataset.pairs) {
    if (pair.label) ++counts.at(static_cast<std::size_t>(*pair.label));
  }
  return counts;
}

Predictions read_predictions(const fs::path& path, Task task) {
  TabSeparatedFile file(path);
  if (!file.next()) throw_user_error("{} is empty", file.name());
  if (file.cells() != std::vector<std::string>{"index", "prediction"}) {
    file.throw_here("predictions begin with the header index<TAB>prediction");
  }
  Predictions predictions;
  while (file.next()) {
    if (file.cells().size() != 2)
      file.throw_here("{}; an index and a prediction are needed", counted(std::ssize(file.cells()), "column"));
    const std::string_view text = file.cells()[0];
    std::int64_t index = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
    if (error != std::errc() || end != text.data() + text.size() || index < 0) {
      file.throw_here("'{}' is not the index of a row, which is counted from 0", text);
    }
    if (!predictions.emplace(index, file.label(file.cells()[1], task)).second) {
      file.throw_here("the row {} is predicted twice", index);
    }
  }
  return predictions;
}

void write_predictions(const fs::path& path, const Predictions& predictions, Task task) {
  std::string text = "index\tprediction\n";
  for (const auto& [index, label] : predictions) {
    text += fmt::format("{}\t{}\n", index, labels_of(task)[static_cast<std::size_t>(label)]);
  }
  write_file_atomically(path, text);
}

}  // namespace teratron::glue
