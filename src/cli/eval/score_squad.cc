// teratron score squad1|squad2: predicted answers against SQuAD's, by its official scores.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/report.h"
#include "tasks/squad/score.h"

namespace teratron {
namespace {

using squad::Scores;
using squad::Version;

struct ScoreSquadOptions {
  std::filesystem::path data, predictions, json;
};

FieldList fields_of(ScoreSquadOptions& o) {
  FieldList list;
  list.add("data", &o.data, "FILE", "SQuAD's questions and answers (JSON, plain or compressed)").required = true;
  list.add("predictions", &o.predictions, "FILE", "JSON: {question id: answer}; \"\" where there is none").required =
      true;
  add_json_field(list, o.json);
  return list;
}

std::string line_of(const char* what, const Scores& scores) {
  return fmt::format("{:<22}{:>7} questions   exact match {:8.4f}   F1 {:8.4f}\n", what, scores.questions,
                     scores.exact_match, scores.f1);
}

nlohmann::ordered_json json_of(const Scores& scores) {
  return {{"questions", scores.questions}, {"exact_match", scores.exact_match}, {"f1", scores.f1}};
}

void run(const ScoreSquadOptions& options, Version version) {
  const squad::Dataset dataset = squad::read_dataset(options.data, version);
  const auto scores = squad::score(dataset, squad::read_predictions(options.predictions), version);
  std::string text = line_of("all", scores.all);
  nlohmann::ordered_json json = json_of(scores.all);
  json["without_prediction"] = scores.all.without_prediction;
  if (version == Version::kSquad2) {
    text += line_of("with an answer", scores.with_answer) + line_of("without an answer", scores.without_answer);
    json["with_answer"] = json_of(scores.with_answer);
    json["without_answer"] = json_of(scores.without_answer);
  }
  if (scores.all.without_prediction > 0) {
    text += fmt::format("{} questions have no prediction, which counts as wrong\n", scores.all.without_prediction);
  }
  report(options.json, text, json.dump());
}

}  // namespace

Command score_squad1_command() {
  return make_command<ScoreSquadOptions>("score squad1", "scores answers to SQuAD 1.1 by exact match and F1",
                                         [](const ScoreSquadOptions& options) { run(options, Version::kSquad1); });
}

Command score_squad2_command() {
  return make_command<ScoreSquadOptions>("score squad2", "scores answers to SQuAD 2.0, some of which are none",
                                         [](const ScoreSquadOptions& options) { run(options, Version::kSquad2); });
}

}  // namespace teratron
