// The entry of RACE.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tasks/race/choices.h"
#include "tasks/race/score.h"
#include "tasks/task_entry.h"

namespace teratron {
namespace {

// With one decimal, as RACE's paper and Megatron-LM's print it.
std::string line_of(const char* what, const race::Scores& scores) {
  return fmt::format("{:<16}{:>7} questions   accuracy {:5.1f}\n", what, scores.questions, scores.accuracy);
}

nlohmann::ordered_json json_of(const race::Scores& scores) {
  return {{"questions", scores.questions}, {"accuracy", scores.accuracy}};
}

ScoreReport score_choices(std::span<const std::filesystem::path> data, const std::filesystem::path& predictions) {
  const race::Dataset dataset = race::read_dataset(data);
  const race::ScoresByLevel scores = race::score(dataset, race::read_predictions(predictions));
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
  return {.text = text, .json = json.dump()};
}

}  // namespace

constinit const TaskEntry kRaceTask = complete({
    .name = "race",
    .ability = "chooses answers on articles (RACE)",
    .shape = {TaskOutputs::kChoice, race::kOptions},
    .labels = {},
    .seq_length = 512,
    .max_query_length = 128,
    .predictions_extension = ".json",
    .paper =
        {
            .batch = {32, 16, 32},
            .learning_rate = {2e-5, 1e-5, 2e-5},
            .epochs = 3,
            .weight_decay = 0.1,
            .search_rates = kBertSearchRates,
        },
    .open = race::open_choices,
    .scoring =
        {
            .summary = "scores answers to RACE by accuracy, of middle, high and all",
            .data = "RACE's folders, its .txt files (JSON), or .jsonl, plain or compressed",
            .predictions = "JSON: {article id: [\"A\", \"C\", ...]}, an answer a question",
            .has_folders = true,
            .score = score_choices,
        },
});

}  // namespace teratron
