// teratron eval multiple-choice: accuracy of a model that chooses the likeliest answer (eval/multiple_choice.h).
#include "eval/multiple_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "cli/commands.h"
#include "cli/eval/scoring.h"
#include "cli/report.h"
#include "console/long_task.h"
#include "runtime/loaded_model.h"

namespace teratron {
namespace {

struct MultipleChoiceOptions : EvaluationOptions {
  std::filesystem::path data;

  MultipleChoiceOptions() { batch = 16; }
};

FieldList fields_of(MultipleChoiceOptions& o) {
  FieldList list;
  list.add("load", &o.load, "DIR", "checkpoint of a model that continues text, or a folder of Hugging Face's")
      .required = true;
  list.add(
          "data", &o.data, "FILE",
          "JSON lines, plain or compressed: {\"context\": .., \"choices\": [..], \"answer\": 0}, or as HellaSwag, ARC, "
          "OpenBookQA, PIQA or MMLU have them")
      .required = true;
  add_evaluation_fields(list, o, "choices");
  return list;
}

std::string text_of(const ChoiceResult& result, std::int64_t cut) {
  const auto per_cent = [](const ChoiceAccuracy& accuracy) {
    return fmt::format("{:.2f} % (standard error {:.2f})", 100 * accuracy.share, 100 * accuracy.standard_error);
  };
  std::string text =
      fmt::format("accuracy {}, by log-probability per character {}, per byte {}; {}\n", per_cent(result.by_sum),
                  per_cent(result.by_character), per_cent(result.by_byte), counted(result.questions, "question"));
  if (cut > 0)
    text += fmt::format("{} longer than the model's context, without the beginning\n", counted(cut, "choice"));
  return text;
}

nlohmann::ordered_json json_of(std::span<const ChoiceQuestion> questions, std::span<const double> log_probabilities,
                               const ChoiceResult& result, std::int64_t cut) {
  nlohmann::ordered_json lists = nlohmann::ordered_json::array();
  for (const ChoiceQuestion& question : questions) {
    const std::size_t count = question.choices.size();
    lists.push_back(
        std::vector<double>(log_probabilities.begin(), log_probabilities.begin() + static_cast<std::ptrdiff_t>(count)));
    log_probabilities = log_probabilities.subspan(count);
  }
  return {{"acc", result.by_sum.share},
          {"acc_stderr", result.by_sum.standard_error},
          {"acc_norm", result.by_character.share},
          {"acc_norm_stderr", result.by_character.standard_error},
          {"acc_bytes", result.by_byte.share},
          {"acc_bytes_stderr", result.by_byte.standard_error},
          {"questions", result.questions},
          {"cut", cut},
          {"log_probabilities", std::move(lists)}};
}

void run(const MultipleChoiceOptions& options) {
  const RankLauncher launcher(options.layout, options.backend.kind);
  launcher.require_file("--data", options.data);
  const WeightSource source = find_model(options.load, options.layout, WeightUse::kEvalMultipleChoice);
  const std::vector<ChoiceQuestion> questions = read_choice_questions(options.data);
  const TokenizedChoices tokenized =
      tokenize_choices(questions, load_tokenizer_for(source, options.tokenizer), source.model.max_position_embeddings);
  std::int64_t longest = 0;
  for (const Continuation& choice : tokenized.choices) longest = std::max(longest, std::ssize(choice.ids) - 1);
  const ExecutorOptions executor{.purpose = Purpose::kEvaluation, .batch = options.batch, .tokens = longest};
  launcher.run(options_text(options), [&](const Rank& rank) {
    const LoadedModel model = load_model(source, executor, options.backend, rank, kEvaluationBatch);
    const ContinuationScores scores = score_continuations(*model.model, tokenized.choices, "a choice of question",
                                                          show_share("answering questions", rank.is_first()));
    const std::vector<std::int64_t> peaks = rank.peak_memory(*model.backend);
    if (!rank.is_first()) return;
    const ChoiceResult result = judge_choices(questions, scores.log_probabilities);
    nlohmann::ordered_json json = json_of(questions, scores.log_probabilities, result, tokenized.cut);
    json["peak_memory_bytes"] = peaks;
    report(options.json, text_of(result, tokenized.cut), json);
  });
}

}  // namespace

Command eval_multiple_choice_command() {
  return make_command<MultipleChoiceOptions>("eval multiple-choice", "measures how often the right answer is likeliest",
                                             run);
}

}  // namespace teratron
