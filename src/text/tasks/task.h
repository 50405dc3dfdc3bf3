// The tasks for which a BERT is fine-tuned: sequences and labels for a model, and the interpretation of its outputs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/examples.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

// Lists every task, in the order of help texts. X(kRace): `const TaskEntry kRaceTask` (task_entry.h), which its folder
// defines.
#define TERATRON_TASKS(X) \
  X(kMnli)                \
  X(kQqp)                 \
  X(kSquad1)              \
  X(kSquad2)              \
  X(kRace)                \
  X(kClassify)            \
  X(kEmbed)               \
  X(kTag)

enum class TaskKind {
#define TERATRON_ENUMERATOR(kind) kind,
  TERATRON_TASKS(TERATRON_ENUMERATOR)
#undef TERATRON_ENUMERATOR
};

// All tasks, in the order of the enumeration.
std::span<const TaskKind> all_tasks();
std::string_view name_of(TaskKind kind);  // mnli, qqp, squad1, squad2, race, classify, embed, tag

// The outputs of a model for an example, by which its head is chosen.
enum class TaskOutputs {
  kLabels,       // `count` logits for each example, one a label; or its number, with `count` = 1
  kChoice,       // a logit for each of the example's `count` sequences
  kSpans,        // `count` = 2 logits for each token: of an answer's first and last token
  kVectors,      // a vector of each of the example's sequences, of which the first `count` = 2 belong together
  kTokenLabels,  // `count` logits for each token, of its label
};

struct TaskShape {
  TaskOutputs outputs = TaskOutputs::kLabels;
  std::int64_t count = 0;
  bool operator==(const TaskShape&) const = default;
};

// Labels of a task whose files decide them (classify, tag).
struct LabelSet {
  bool are_numbers = false;        // a number for each example, and no names
  std::vector<std::string> names;  // in the order of their numbers

  bool empty() const { return !are_numbers && names.empty(); }
  bool operator==(const LabelSet&) const = default;
};

// Content of a column of labels.
enum class LabelKind {
  kAuto,     // numbers where every label is one, and some have a fraction; else names
  kNames,    // one of several for each text
  kNumbers,  // one for each text, such as STS-B's similarities
};

// How texts become sequences, and outputs become answers.
struct TaskReading {
  std::int64_t seq_length = 128;  // highest number of tokens of a sequence, with [CLS] and [SEP]
  // Highest number of tokens of a question (SQuAD), or of a question with an option (RACE); the rest is cut off. 0: no
  // limit.
  std::int64_t max_query_length = 0;

  // SQuAD; doc_stride of tag, too. Texts that do not fit are read in windows.
  std::int64_t doc_stride = 128;        // tokens that a window shares with the one before, as in Hugging Face's run_qa
  std::int64_t max_answer_length = 30;  // tokens
  std::int64_t n_best = 20;             // candidates for the first token, and for the last one, in a window
  // 2.0: the answer is empty if its score is this much higher than the best answer's.
  double null_score_diff_threshold = 0;

  // Columns of the files of classify and embed; of tag, those of words and labels (tag/sentences.h). An empty
  // pair_column is none (classify) or "pair" (embed); negative_column is embed's alone, empty: none.
  std::string text_column = "text", pair_column, label_column = "label", negative_column;
  LabelKind label_kind = LabelKind::kAuto;  // classify: of labels_in_files()
  std::vector<std::string> label_names;     // tag: names of the numbers in files; empty: those of `labels`
  // Labels of classify and tag, empty: as the opened files have them; numbers of embed are similarities to learn.
  LabelSet labels;
};

// The outputs of a model for a task. Those of classify and tag follow from reading.labels; without it their count is 0.
TaskShape shape_of(TaskKind kind, const TaskReading& reading = {});

// The labels of a kLabels or kTokenLabels task in the order of their numbers, for examples, outputs, scores and
// checkpoints. Empty for other tasks, and for numbers.
std::vector<std::string> label_names(TaskKind kind, const TaskReading& reading = {});

// Whether the files to train on decide the labels (classify, tag).
bool has_labels_of_files(TaskKind kind);
// Those labels; of embed numbers, or none. UserError: as open_task(), and custom/labels.h.
LabelSet labels_in_files(TaskKind kind, std::span<const std::filesystem::path> files, const TaskReading& reading);

// The usual settings: sequences of 128 tokens (MNLI, QQP, classify, embed, tag), 384 (SQuAD) and 512 (RACE); questions
// of 64 (SQuAD) and 128 (RACE); columns.
TaskReading default_reading(TaskKind kind);

struct TaskScore {
  std::string name;  // its name in `teratron score --json`
  double value = 0;  // in per cent, but of mean_squared_error
};

// The outputs for each example: logits of the labels or of the choices; for spans [2, tokens], the logits of the first
// token, then of the last one; vectors one after another.
using TaskOutputValues = std::vector<std::vector<float>>;

// One data set as sequences, and the interpretation of a model's outputs for them. Immutable; safe to use from many
// threads.
class TaskSet {
 public:
  virtual ~TaskSet() = default;

  const TaskExamples& examples() const { return examples_; }
  // A summary for users of what was read, cut and left out; its parts are joined by "; ".
  const std::string& notes() const { return notes_; }

  // Whether scores() may be called.
  virtual bool has_labels() const = 0;
  // The first score compares sets of a task: accuracy (MNLI, QQP, RACE, classify), F1 (SQuAD), Spearman's correlation
  // (numbers of classify, similarities of embed), the accuracy of retrieval (embed without them), F1 of spans (tag; of
  // labels that are none of spans their accuracy). Further ones are F1 (QQP, each type of tag), exact match (SQuAD),
  // accuracies of middle and high schools (RACE, of its levels), and those of custom/metrics.h. InternalError: no
  // labels, outputs of other examples.
  virtual std::vector<TaskScore> scores(const TaskOutputValues& outputs) const = 0;
  // Writes the format of the task's site: GLUE's table (MNLI, QQP), JSON (SQuAD, RACE), JSON lines (classify, embed;
  // tag, unless the name says CoNLL), whole or not at all. EnvironmentError: it cannot be written; InternalError:
  // outputs of other examples.
  virtual void write_predictions(const std::filesystem::path& path, const TaskOutputValues& outputs) const = 0;

 protected:
  TaskExamples examples_;
  std::string notes_;
};

// Reads one set from its files. For training, examples without a usable label are left out, and notes() counts them.
// UserError: as the reader of the task's files (format.h, custom/table.h, tag/sentences.h); a tokenizer that is not
// BERT's; a sequence too short; nothing left to train on.
std::unique_ptr<TaskSet> open_task(TaskKind kind, std::span<const std::filesystem::path> files,
                                   const Tokenizer& tokenizer, const TaskReading& reading, bool training);

// The outputs of an ensemble: the mean of its models' logits, in double precision and in the given order.
// InternalError: no model, outputs of different shapes.
TaskOutputValues mean_of(std::span<const TaskOutputValues> models);

// The index of the median run by score: of an even number the lower of the two in the middle, of equal ones the first.
// InternalError: no scores.
std::size_t median_of(const std::vector<double>& scores);

}  // namespace teratron
