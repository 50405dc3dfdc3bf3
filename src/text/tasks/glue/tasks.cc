// The entries of MNLI and QQP.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tasks/glue/pairs.h"
#include "tasks/glue/score.h"
#include "tasks/task_entry.h"

namespace teratron {
namespace {

constexpr std::array<std::string_view, 2> kQqpLabelNames = {"not_duplicate", "duplicate"};

template <glue::Task task>
std::unique_ptr<TaskSet> open_pairs_of(std::span<const std::filesystem::path> files, const Tokenizer& tokenizer,
                                       const TaskReading& reading, bool training) {
  return glue::open_pairs(task, files, tokenizer, reading, training);
}

// What the score leaves out or counts as wrong, and labels that no pair has.
std::string notes_of(const glue::Dataset& dataset, const glue::Scores& scores) {
  std::string text;
  const auto note = [&](std::int64_t count, std::string_view what) {
    if (count > 0) text += fmt::format("{} {}\n", count, what);
  };
  note(scores.without_prediction, "pairs have no prediction, which counts as wrong");
  note(dataset.skipped.without_gold, "rows are left out, because their annotators did not agree (-)");
  note(dataset.skipped.wrong_columns, "rows are left out, because they have a wrong number of columns");
  note(dataset.skipped.empty, "rows are left out, because a sentence is empty");
  const auto counts = glue::count_labels(dataset);
  for (std::size_t label = 0; label < counts.size(); ++label) {
    if (counts[label] == 0) text += fmt::format("no pair is labelled {}\n", glue::labels_of(dataset.task)[label]);
  }
  return text;
}

template <glue::Task task>
ScoreReport score_pairs(std::span<const std::filesystem::path> data, const std::filesystem::path& predictions) {
  const glue::Dataset dataset = glue::read_dataset(data.front(), task);
  const glue::Scores scores = glue::score(dataset, glue::read_predictions(predictions, task));
  std::string text = fmt::format("{} pairs   accuracy {:.4f}", scores.pairs, scores.accuracy);
  nlohmann::ordered_json json = {{"pairs", scores.pairs}, {"accuracy", scores.accuracy}};
  if (task == glue::Task::kQqp) {
    text += fmt::format("   F1 {:.4f}", scores.f1);
    json["f1"] = scores.f1;
  }
  json["without_prediction"] = scores.without_prediction;
  json["skipped"] = {{"without_gold", dataset.skipped.without_gold},
                     {"wrong_columns", dataset.skipped.wrong_columns},
                     {"empty", dataset.skipped.empty}};
  return {.text = text + "\n" + notes_of(dataset, scores), .json = json.dump()};
}

constexpr TaskScoring pair_scoring(glue::Task task) {
  const bool is_mnli = task == glue::Task::kMnli;
  return {.summary = is_mnli ? "scores labels of MNLI by accuracy, matched or mismatched"
                             : "scores labels of QQP by accuracy and F1",
          .data = "GLUE's .tsv with labels; of MNLI also label, premise, hypothesis",
          .predictions = "as GLUE's site takes them: index<TAB>prediction, a header first",
          .has_folders = false,
          .score = is_mnli ? score_pairs<glue::Task::kMnli> : score_pairs<glue::Task::kQqp>};
}

}  // namespace

constinit const TaskEntry kMnliTask = complete({
    .name = "mnli",
    .ability = "tells whether a text follows from another (MNLI)",
    .shape = {TaskOutputs::kLabels, std::size(glue::kMnliLabels)},
    .labels = glue::kMnliLabels,
    .seq_length = 128,
    .max_query_length = 0,
    .predictions_extension = ".tsv",
    .paper =
        {
            .batch = {128, 128, 128},
            .learning_rate = {1e-5, 1e-5, 1e-5},
            .epochs = 10,
            .weight_decay = 0.1,
            .search_rates = kRobertaSearchRates,
        },
    .open = open_pairs_of<glue::Task::kMnli>,
    .scoring = pair_scoring(glue::Task::kMnli),
});

constinit const TaskEntry kQqpTask = complete({
    .name = "qqp",
    .ability = "tells whether questions ask the same (QQP)",
    .shape = {TaskOutputs::kLabels, std::size(kQqpLabelNames)},
    .labels = kQqpLabelNames,
    .seq_length = 128,
    .max_query_length = 0,
    .predictions_extension = ".tsv",
    .paper =
        {
            .batch = {128, 128, 256},
            .learning_rate = {5e-5, 3e-5, 4e-5},
            .epochs = 12,
            .weight_decay = 0.1,
            .search_rates = kRobertaSearchRates,
        },
    .open = open_pairs_of<glue::Task::kQqp>,
    .scoring = pair_scoring(glue::Task::kQqp),
});

}  // namespace teratron
