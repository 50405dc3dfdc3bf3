// The tasks that a BERT is fine-tuned for, as training and evaluation see them: sequences and labels that go into a
// model, and what its outputs mean.
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

// Every task, in the order of help texts. X(kRace): `const TaskEntry kRaceTask` (task_entry.h), which its folder
// defines.
#define TERATRON_TASKS(X) \
  X(kMnli)                \
  X(kQqp)                 \
  X(kSquad1)              \
  X(kSquad2)              \
  X(kRace)

enum class TaskKind {
#define TERATRON_ENUMERATOR(kind) kind,
  TERATRON_TASKS(TERATRON_ENUMERATOR)
#undef TERATRON_ENUMERATOR
};

// All of them, in the order of the enumeration.
std::span<const TaskKind> all_tasks();
std::string_view name_of(TaskKind kind);  // mnli, qqp, squad1, squad2, race
// UserError that lists the names, where it is none.
TaskKind task_named(std::string_view name);

// What a model has to give for an example, by which its head is chosen.
enum class TaskOutputs {
  kLabels,  // logits of an example's label, `count` of them
  kChoice,  // a logit for each of the example's `count` sequences
  kSpans,   // `count` = 2 logits for each token: of an answer's beginning and of its end
};

struct TaskShape {
  TaskOutputs outputs = TaskOutputs::kLabels;
  std::int64_t count = 0;
  bool operator==(const TaskShape&) const = default;
};

TaskShape shape_of(TaskKind kind);

// The labels of a task of kLabels in the order of their numbers, which are those of examples and of a model's outputs;
// scores and checkpoints take them from here. Empty: outputs of the task are no labels.
std::span<const std::string_view> label_names(TaskKind kind);

// How texts become sequences, and outputs answers.
struct TaskReading {
  std::int64_t seq_length = 128;  // the most tokens of a sequence, with [CLS] and [SEP]
  // SQuAD: of the question; RACE: of the question with an option in it. What is longer loses its end. 0: no limit.
  std::int64_t max_query_length = 0;

  // SQuAD. Paragraphs that do not fit are read in windows.
  std::int64_t doc_stride = 128;        // tokens that a window shares with the one before, as in Hugging Face's run_qa
  std::int64_t max_answer_length = 30;  // tokens
  std::int64_t n_best = 20;             // beginnings, and ends, of a window that are put together to answers
  // 2.0: there is no answer where its score is this much higher than the best answer's.
  double null_score_diff_threshold = 0;
};

// The usual ones: sequences of 128 tokens (MNLI, QQP), 384 (SQuAD) and 512 (RACE); questions of 64 (SQuAD) and 128
// (RACE).
TaskReading default_reading(TaskKind kind);

struct TaskScore {
  std::string name;  // as `teratron score --json` calls it
  double value = 0;  // in per cent
};

// What a model gave for each example: logits of the labels or of the choices; of spans the logits of the beginning at
// each token of the sequence and then those of the end, [2, tokens].
using TaskOutputValues = std::vector<std::vector<float>>;

// The data of one set, as sequences, and what a model's outputs for them mean. Immutable, and safe to use from many
// threads.
class TaskSet {
 public:
  virtual ~TaskSet() = default;

  virtual const TaskExamples& examples() const = 0;
  // For people: what was read, and how much was cut or left out, in parts with "; " between them.
  virtual std::string notes() const = 0;

  // Whether scores() can be asked for.
  virtual bool has_labels() const = 0;
  // The first is the one that sets of a task are compared by: accuracy (MNLI, QQP, RACE), F1 (SQuAD). Further ones are
  // F1 (QQP), exact match (SQuAD), accuracies of middle and high schools (RACE, of the levels that it has).
  // InternalError: no labels, outputs of other examples.
  virtual std::vector<TaskScore> scores(const TaskOutputValues& outputs) const = 0;
  // In the format that the task's site takes: GLUE's table (MNLI, QQP), JSON (SQuAD, RACE). Whole or not at all.
  // EnvironmentError where it cannot be written; InternalError: outputs of other examples.
  virtual void write_predictions(const std::filesystem::path& path, const TaskOutputValues& outputs) const = 0;
};

// Reads one set from its files, all of which count as one. For training, examples without a usable label are left out,
// and notes() tells how many. UserError: what a task's format.h lists; a tokenizer that is not BERT's; a sequence too
// short; nothing left to train on.
std::unique_ptr<TaskSet> open_task(TaskKind kind, std::span<const std::filesystem::path> files,
                                   const Tokenizer& tokenizer, const TaskReading& reading, bool training);

// The outputs of an ensemble: the mean of its models' logits, in double precision and in the order given, whatever the
// task. InternalError: no model, outputs of different shapes.
TaskOutputValues mean_of(std::span<const TaskOutputValues> models);

// Which of several runs is the median by its score: of an even number the lower of the two in the middle, of equal ones
// the first. InternalError: no scores.
std::size_t median_of(const std::vector<double>& scores);

}  // namespace teratron
