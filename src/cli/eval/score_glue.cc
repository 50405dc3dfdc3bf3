// teratron score mnli|qqp: predicted labels against GLUE's, by its official scores.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/report.h"
#include "tasks/glue/score.h"

namespace teratron {
namespace {

using glue::Task;

struct ScoreGlueOptions {
  std::filesystem::path data, predictions, json;
};

FieldList fields_of(ScoreGlueOptions& o) {
  FieldList list;
  list.add("data", &o.data, "FILE", "GLUE's .tsv with labels; of MNLI also label, premise, hypothesis").required = true;
  list.add("predictions", &o.predictions, "FILE", "as GLUE's site takes them: index<TAB>prediction, a header first")
      .required = true;
  add_json_field(list, o.json);
  return list;
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

void run(const ScoreGlueOptions& options, Task task) {
  const glue::Dataset dataset = glue::read_dataset(options.data, task);
  const glue::Scores scores = glue::score(dataset, glue::read_predictions(options.predictions, task));
  std::string text = fmt::format("{} pairs   accuracy {:.4f}", scores.pairs, scores.accuracy);
  nlohmann::ordered_json json = {{"pairs", scores.pairs}, {"accuracy", scores.accuracy}};
  if (task == Task::kQqp) {
    text += fmt::format("   F1 {:.4f}", scores.f1);
    json["f1"] = scores.f1;
  }
  json["without_prediction"] = scores.without_prediction;
  json["skipped"] = {{"without_gold", dataset.skipped.without_gold},
                     {"wrong_columns", dataset.skipped.wrong_columns},
                     {"empty", dataset.skipped.empty}};
  report(options.json, text + "\n" + notes_of(dataset, scores), json.dump());
}

}  // namespace

Command score_mnli_command() {
  return make_command<ScoreGlueOptions>("score mnli", "scores labels of MNLI by accuracy, matched or mismatched",
                                        [](const ScoreGlueOptions& options) { run(options, Task::kMnli); });
}

Command score_qqp_command() {
  return make_command<ScoreGlueOptions>("score qqp", "scores labels of QQP by accuracy and F1",
                                        [](const ScoreGlueOptions& options) { run(options, Task::kQqp); });
}

}  // namespace teratron
