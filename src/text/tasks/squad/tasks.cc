// The entries of SQuAD 1.1 and 2.0.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "tasks/squad/samples.h"
#include "tasks/squad/score.h"
#include "tasks/task_entry.h"

namespace teratron {
namespace {

template <squad::Version version>
std::unique_ptr<TaskSet> open_samples_of(std::span<const std::filesystem::path> files, const Tokenizer& tokenizer,
                                         const TaskReading& reading, bool training) {
  return squad::open_samples(version, files, tokenizer, reading, training);
}

std::string line_of(const char* what, const squad::Scores& scores) {
  return fmt::format("{:<22}{:>7} {:<9}   exact match {:8.4f}   F1 {:8.4f}\n", what, scores.questions,
                     scores.questions == 1 ? "question" : "questions", scores.exact_match, scores.f1);
}

nlohmann::ordered_json json_of(const squad::Scores& scores) {
  return {{"questions", scores.questions}, {"exact_match", scores.exact_match}, {"f1", scores.f1}};
}

template <squad::Version version>
ScoreReport score_answers(std::span<const std::filesystem::path> data, const std::filesystem::path& predictions,
                          const TaskReading& /*reading*/) {
  const squad::Dataset dataset = squad::read_dataset(data.front(), version);
  const auto scores = squad::score(dataset, squad::read_predictions(predictions), version);
  std::string text = line_of("all", scores.all);
  nlohmann::ordered_json json = json_of(scores.all);
  json["without_prediction"] = scores.all.without_prediction;
  if (version == squad::Version::kSquad2) {
    text += line_of("with an answer", scores.with_answer) + line_of("without an answer", scores.without_answer);
    json["with_answer"] = json_of(scores.with_answer);
    json["without_answer"] = json_of(scores.without_answer);
  }
  if (scores.all.without_prediction > 0) {
    text += fmt::format("{} without a prediction, which counts as wrong\n",
                        counted(scores.all.without_prediction, "question"));
  }
  return {.text = text, .json = json.dump()};
}

constexpr TaskScoring answer_scoring(squad::Version version) {
  const bool is_first = version == squad::Version::kSquad1;
  return {.summary = is_first ? "scores answers to SQuAD 1.1 by exact match and F1"
                              : "scores answers to SQuAD 2.0, some of which are none",
          .data = "SQuAD's questions and answers (JSON, plain or compressed)",
          .predictions = "JSON: {question id: answer}; \"\" where there is none",
          .has_folders = false,
          .score = is_first ? score_answers<squad::Version::kSquad1> : score_answers<squad::Version::kSquad2>};
}

// The entry of a version; `batch` is Table 6's.
template <squad::Version kVersion>
consteval TaskEntry entry(std::string_view name, std::string_view ability, std::array<std::int64_t, 3> batch) {
  return complete({
      .name = name,
      .ability = ability,
      .shape = {TaskOutputs::kSpans, 2},
      .labels = {},
      .seq_length = 384,
      .max_query_length = 64,
      .predictions_extension = ".json",
      .paper =
          {
              .batch = batch,
              .learning_rate = {3e-5, 3e-5, 1e-5},
              .epochs = 2,
              .weight_decay = 0.01,
              .search_rates = kBertSearchRates,
          },
      .open = open_samples_of<kVersion>,
      .scoring = answer_scoring(kVersion),
  });
}

}  // namespace

constinit const TaskEntry kSquad1Task =
    entry<squad::Version::kSquad1>("squad1", "finds answers in paragraphs (SQuAD 1.1)", {64, 48, 48});
constinit const TaskEntry kSquad2Task =
    entry<squad::Version::kSquad2>("squad2", "finds answers that may not be there (SQuAD 2.0)", {48, 64, 48});

}  // namespace teratron
