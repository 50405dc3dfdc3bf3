// RACE: four sequences for each question, the options of a model's outputs, and the task's entry.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "tasks/pair_encoding.h"
#include "tasks/race/format.h"
#include "tasks/race/score.h"
#include "tasks/task.h"
#include "tasks/task_entry.h"

namespace teratron::race {
namespace {

namespace fs = std::filesystem;

class ChoiceSet : public TaskSet {
 public:
  ChoiceSet(Dataset articles, const Tokenizer& tokenizer, const TaskReading& reading) : articles_(std::move(articles)) {
    const TextFrame frame = frame_of_pairs(tokenizer, reading.seq_length);
    if (reading.max_query_length < 1) throw_user_error("--max-query-length must be 1 at least");
    examples_.sequences_each = kOptions;
    struct QuestionIndex {
      std::size_t article, question;
    };
    std::vector<QuestionIndex> indices;
    for (std::size_t article = 0; article < articles_.size(); ++article) {
      for (std::size_t i = 0; i < articles_[article].questions.size(); ++i) {
        indices.push_back({article, i});
        examples_.labels.push_back(articles_[article].questions[i].answer);
      }
    }
    const TokenLists texts = encode_texts(
        tokenizer, std::ssize(articles_), [&](std::size_t i) -> auto& { return articles_[i].text; });
    const TokenLists choices =
        encode_texts(tokenizer, std::ssize(indices) * examples_.sequences_each, [&](std::size_t i) {
          const QuestionIndex& index = indices[i / kOptions];
          const Question& question = articles_[index.article].questions[index.question];
          return question_with_option(question.text, question.options[i % kOptions]);
        });
    std::vector<TokenPair> pairs;
    std::int64_t long_choices = 0, cut = 0;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      std::span<const std::int32_t> choice = choices[i];
      if (std::ssize(choice) > reading.max_query_length) {
        choice = choice.first(static_cast<std::size_t>(reading.max_query_length));
        ++long_choices;
      }
      pairs.push_back({.a = texts[indices[i / kOptions].article], .b = choice});
      if (cut_longer_side(pairs.back(), reading.seq_length - frame.tokens_of_two())) ++cut;
    }
    write_sequences(pairs, frame, examples_);
    notes_ =
        fmt::format("{} on {}, {}", counted(std::ssize(indices), "question"), counted(std::ssize(articles_), "article"),
                    counted(std::ssize(pairs), "sequence")) +
        note_of(cut, "sequence", fmt::format("cut to {} tokens", reading.seq_length)) +
        note_of(long_choices, "question", fmt::format("with an option cut to {} tokens", reading.max_query_length));
    drop_texts();
  }

  bool has_labels() const override { return true; }  // files without answers are refused

  std::vector<TaskScore> scores(const TaskOutputValues& outputs) const override {
    const ScoresByLevel by_level = score(articles_, predictions(outputs));
    std::vector<TaskScore> list = {{"accuracy", by_level.all.accuracy}};
    if (by_level.middle.questions > 0) list.push_back({"accuracy_middle", by_level.middle.accuracy});
    if (by_level.high.questions > 0) list.push_back({"accuracy_high", by_level.high.accuracy});
    return list;
  }

  void write_predictions(const fs::path& path, const TaskOutputValues& outputs) const override {
    race::write_predictions(path, predictions(outputs));
  }

 private:
  // Only answers and ids are needed later.
  void drop_texts() {
    for (Article& article : articles_) {
      article.text = {};
      for (Question& question : article.questions) {
        question.text = {};
        question.options = {};
      }
    }
  }

  Predictions predictions(const TaskOutputValues& outputs) const {
    check_outputs(outputs, examples_.count(), [&](std::int64_t) { return examples_.sequences_each; });
    Predictions answers;
    std::size_t at = 0;
    for (const Article& article : articles_) {
      std::vector<int>& list = answers[article.id];
      for (std::size_t i = 0; i < article.questions.size(); ++i) list.push_back(index_of_largest(outputs[at++]));
    }
    return answers;
  }

  Dataset articles_;  // without texts
};

std::unique_ptr<TaskSet> open_choices(std::span<const fs::path> files, const Tokenizer& tokenizer,
                                      const TaskReading& reading, bool /*training*/) {
  return std::make_unique<ChoiceSet>(read_dataset(files), tokenizer, reading);
}

// One decimal, as in RACE's paper and Megatron-LM.
std::string line_of(const char* what, const Scores& scores) {
  return fmt::format("{:<16}{:>7} {:<9}   accuracy {:5.1f}\n", what, scores.questions,
                     scores.questions == 1 ? "question" : "questions", scores.accuracy);
}

nlohmann::ordered_json json_of(const Scores& scores) {
  return {{"questions", scores.questions}, {"accuracy", scores.accuracy}};
}

ScoreReport score_choices(std::span<const std::filesystem::path> data, const std::filesystem::path& predictions,
                          const TaskReading& /*reading*/) {
  const Dataset dataset = read_dataset(data);
  const ScoresByLevel scores = score(dataset, read_predictions(predictions));
  std::string text = line_of("RACE-M (middle)", scores.middle) + line_of("RACE-H (high)", scores.high) +
                     line_of("RACE (all)", scores.all);
  if (scores.all.without_prediction > 0) {
    text += fmt::format("{} without a prediction, which counts as wrong\n",
                        counted(scores.all.without_prediction, "question"));
  }
  nlohmann::ordered_json json = {{"accuracy", scores.all.accuracy}};
  json["middle"] = json_of(scores.middle);
  json["high"] = json_of(scores.high);
  json["all"] = json_of(scores.all);
  json["without_prediction"] = scores.all.without_prediction;
  return {.text = text, .json = json.dump()};
}

}  // namespace
}  // namespace teratron::race

namespace teratron {

constinit const TaskEntry kRaceTask = complete({
    .name = "race",
    .ability = "chooses answers on articles (RACE)",
    .shape = {TaskOutputs::kChoice, race::kOptions},
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
            .score = race::score_choices,
        },
});

}  // namespace teratron
