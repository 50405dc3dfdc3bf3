// The entry of a task: all that reading, training and evaluating need and that differs between tasks. A task's folder
// defines its entry; TERATRON_TASKS (task.h) lists it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "tasks/task.h"

namespace teratron {

// Table 6 of the Megatron-LM paper: the settings with which its models of 336M, 1.3B and 3.9B parameters were
// fine-tuned. A task outside that table takes them from the paper that fine-tunes a BERT for it.
struct PaperFineTuning {
  std::array<std::int64_t, 3> batch;  // examples
  std::array<double, 3> learning_rate;
  std::int64_t epochs;
  // RoBERTa's (arXiv 1907.11692, Table 10), whose procedure the Megatron-LM paper follows.
  double weight_decay;
  // Learning rates that --search tries: RoBERTa's (section 5.1) or BERT's (arXiv 1810.04805, appendix A.3).
  std::array<double, 3> search_rates;
};

inline constexpr std::array<double, 3> kPaperModels = {336e6, 1.3e9, 3.9e9};  // parameters, of the arrays above
inline constexpr std::array<double, 3> kRobertaSearchRates = {1e-5, 2e-5, 3e-5};
inline constexpr std::array<double, 3> kBertSearchRates = {2e-5, 3e-5, 5e-5};

// Settings of tasks on files of one's own: BERT's fine-tuning (arXiv 1810.04805, appendix A.3) for models of any size.
consteval PaperFineTuning bert_fine_tuning(double learning_rate) {
  return {.batch = {32, 32, 32},
          .learning_rate = {learning_rate, learning_rate, learning_rate},
          .epochs = 3,
          .weight_decay = 0.01,
          .search_rates = kBertSearchRates};
}

// A function that an entry cannot omit, since it has no default. (Testing a pointer for null is no constant expression
// under the undefined behaviour sanitizer.)
template <class Function>
struct Required {
  Function* function;
  constexpr Required(Function* given) : function(given) {}  // NOLINT
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) const {
    return function(std::forward<Arguments>(arguments)...);
  }
};

// The scores of a file of predictions: for people, and as a JSON object.
struct ScoreReport {
  std::string text, json;
};

// `teratron score TASK`: the task's own scores of predictions in the format of its site.
struct TaskScoring {
  std::string_view summary;            // "scores labels of QQP by accuracy and F1"
  std::string_view data, predictions;  // the help of --data and --predictions
  // classify, embed and tag alone read `reading`: columns, and names of labels.
  Required<ScoreReport(std::span<const std::filesystem::path> data, const std::filesystem::path& predictions,
                       const TaskReading& reading)>
      score;
};

struct TaskEntry {
  std::string_view name;
  std::string_view ability;                       // of a fine-tuned BERT: "finds answers in paragraphs (SQuAD 1.1)"
  TaskShape shape;                                // its count is 0 where the files decide the labels
  std::span<const std::string_view> labels = {};  // as label_names()
  std::int64_t seq_length, max_query_length = 0;  // of default_reading()
  std::string_view predictions_extension;         // ".tsv", ".json"
  PaperFineTuning paper;
  Required<std::unique_ptr<TaskSet>(std::span<const std::filesystem::path> files, const Tokenizer& tokenizer,
                                    const TaskReading& reading, bool training)>
      open;
  TaskScoring scoring;
  bool has_labels_of_files = false;
  LabelSet (*labels_in_files)(std::span<const std::filesystem::path> files, const TaskReading& reading) = nullptr;
  std::string_view text_column = "text", label_column = "label";  // of default_reading()
};

// Returns the entry if nothing is missing; otherwise it does not compile.
consteval TaskEntry complete(TaskEntry entry) {
  const auto positive = [](const auto& values) {
    for (const auto value : values) {
      if (!(value > 0)) return false;
    }
    return true;
  };
  const std::size_t labels = entry.shape.outputs == TaskOutputs::kLabels ? std::size_t(entry.shape.count) : 0;
  if (entry.name.empty() || entry.ability.empty() || (entry.shape.count == 0) != entry.has_labels_of_files ||
      entry.labels.size() != labels || entry.seq_length == 0 || entry.predictions_extension.empty() ||
      !positive(entry.paper.batch) || !positive(entry.paper.learning_rate) || entry.paper.epochs == 0 ||
      !positive(entry.paper.search_rates) || entry.scoring.summary.empty()) {
    throw "a task's entry is incomplete";
  }
  return entry;
}

const TaskEntry& entry_of(TaskKind kind);

#define TERATRON_DECLARE_TASK(kind) extern const TaskEntry kind##Task;
TERATRON_TASKS(TERATRON_DECLARE_TASK)
#undef TERATRON_DECLARE_TASK

// UserError: all examples to train on were left out, since none has a label. `noun` of one.
[[noreturn]] inline void throw_unlabelled(std::int64_t left_out, std::string_view noun) {
  throw_user_error("no {} to train on has a label ({} read); a test set cannot be trained on", noun,
                   counted(left_out, noun));
}

// The index of the largest; the first of equal ones.
inline int index_of_largest(std::span<const float> values) {
  return static_cast<int>(std::ranges::max_element(values) - values.begin());
}

// InternalError unless each example has wanted(i) outputs.
template <class Wanted>
void check_outputs(const TaskOutputValues& outputs, std::int64_t examples, const Wanted& wanted) {
  check_equal(std::ssize(outputs), examples, "examples that have outputs");
  for (std::int64_t i = 0; i < examples; ++i) {
    check_equal(std::ssize(outputs[static_cast<std::size_t>(i)]), wanted(i), "outputs of an example");
  }
}

}  // namespace teratron
