// teratron score race: predicted answers against RACE's, by its official accuracies.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/report.h"
#include "tasks/race/score.h"

namespace teratron {
namespace {

struct ScoreRaceOptions {
  std::vector<std::filesystem::path> data;
  std::filesystem::path predictions, json;
};

FieldList fields_of(ScoreRaceOptions& o) {
  FieldList list;
  list.add("data", &o.data, "PATH", "RACE's folders, its .txt files (JSON), or .jsonl, plain or compressed").required =
      true;
  list.add("predictions", &o.predictions, "FILE", "JSON: {article id: [\"A\", \"C\", ...]}, an answer a question")
      .required = true;
  add_json_field(list, o.json);
  return list;
}

// With one decimal, as RACE's paper and Megatron-LM's print it.
std::string line_of(const char* what, const race::Scores& scores) {
  return fmt::format("{:<16}{:>7} questions   accuracy {:5.1f}\n", what, scores.questions, scores.accuracy);
}

nlohmann::ordered_json json_of(const race::Scores& scores) {
  return {{"questions", scores.questions}, {"accuracy", scores.accuracy}};
}

void run(const ScoreRaceOptions& options) {
  const race::Dataset dataset = race::read_dataset(options.data);
  const race::ScoresByLevel scores = race::score(dataset, race::read_predictions(options.predictions));
  std::string text = line_of("RACE-M (middle)", scores.middle) + line_of("RACE-H (high)", scores.high) +
                     line_of("RACE (all)", scores.all);
  if (scores.all.without_prediction > 0) {
    text += fmt::format("{} questions have no prediction, which counts as wrong\n", scores.all.without_prediction);
  }
  nlohmann::ordered_json json = {{"accuracy", scores.all.accuracy}};
  json["middle"] = json_of(scores.middle);
  json["high"] = json_of(scores.high);
  json["all"] = json_of(scores.all);
  json["without_prediction"] = scores.all.without_prediction;
  report(options.json, text, json.dump());
}

}  // namespace

Command score_race_command() {
  return make_command<ScoreRaceOptions>("score race", "scores answers to RACE by accuracy, of middle, high and all",
                                        run);
}

}  // namespace teratron
