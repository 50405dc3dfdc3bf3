// teratron eval lambada: accuracy of a GPT-2 on the last words of passages (eval/lambada.h).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "cli/commands.h"
#include "cli/eval/scoring.h"
#include "cli/report.h"
#include "cli/text_format.h"
#include "console/long_task.h"
#include "data/text/text_list.h"
#include "eval/lambada.h"
#include "eval/paper_results.h"
#include "runtime/loaded_model.h"

namespace teratron {
namespace {

struct EvalLambadaOptions : EvaluationOptions {
  std::filesystem::path data;
  TextFormat format = TextFormat::kAuto;
  std::string json_key = "text";

  EvalLambadaOptions() { batch = 16; }
};

FieldList fields_of(EvalLambadaOptions& o) {
  FieldList list;
  list.add("load", &o.load, "DIR", "checkpoint of a GPT-2, or a folder of Hugging Face's").required = true;
  list.add("data", &o.data, "FILE",
           "lambada_test.jsonl: {\"text\": ...} a line; or a passage a line; plain or compressed")
      .required = true;
  add_text_format_fields(list, o.format, o.json_key);
  add_evaluation_fields(list, o, "passages");
  return list;
}

std::string text_of(const ClozeExamples& examples, const ClozeResult& result) {
  std::string text = fmt::format(
      "accuracy {:.2f} %: {} of {} last words found, all their tokens, in raw text; mean log-probability of a word "
      "{:.4f}\n",
      result.accuracy(), result.correct, result.examples,
      result.log_probability / static_cast<double>(result.examples));
  if (examples.too_short > 0)
    text += fmt::format("{} without two words left out\n", counted(examples.too_short, "passage"));
  if (examples.cut > 0)
    text +=
        fmt::format("{} longer than the model's context, without the beginning\n", counted(examples.cut, "passage"));
  return text + fmt::format("the paper reports {}\n", paper_result("lambada", "accuracy"));
}

nlohmann::ordered_json json_of(const ClozeExamples& examples, const ClozeResult& result) {
  return {{"evaluation", "lambada"},
          {"accuracy", result.accuracy()},
          {"correct", result.correct},
          {"examples", result.examples},
          {"mean_log_probability", result.log_probability / static_cast<double>(result.examples)},
          {"left_out", examples.too_short},
          {"cut", examples.cut}};
}

void run(const EvalLambadaOptions& options) {
  const RankLauncher launcher(options.layout, options.backend.kind);
  launcher.require_file("--data", options.data);
  const WeightSource source = find_model(options.load, options.layout, WeightUse::kEvalLambada);
  const ClozeExamples examples =
      cloze_examples(read_text_list(options.data, options.format, {.names = {options.json_key}}, BlankLines::kSkip),
                     load_tokenizer_for(source, options.tokenizer), source.model.max_position_embeddings);
  std::int64_t longest = 0;
  for (const Continuation& example : examples.examples) longest = std::max(longest, std::ssize(example.ids) - 1);
  const ExecutorOptions executor{.purpose = Purpose::kEvaluation, .batch = options.batch, .tokens = longest};
  launcher.run(options_text(options), [&](const Rank& rank) {
    const LoadedModel model = load_model(source, executor, options.backend, rank, kEvaluationBatch);
    const ClozeResult result =
        score_cloze(*model.model, examples.examples, show_share("finding last words", rank.is_first()));
    const std::vector<std::int64_t> peaks = rank.peak_memory(*model.backend);
    if (!rank.is_first()) return;
    nlohmann::ordered_json json = json_of(examples, result);
    json["peak_memory_bytes"] = peaks;
    report(options.json, text_of(examples, result), json);
  });
}

}  // namespace

Command eval_lambada_command() {
  return make_command<EvalLambadaOptions>("eval lambada", "measures how often a passage's last word is found", run);
}

}  // namespace teratron
