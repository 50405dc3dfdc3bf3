// teratron eval wikitext103: perplexity by the Megatron-LM paper's rules (eval/wikitext.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/eval/scoring.h"
#include "cli/report.h"
#include "data/text/text_list.h"
#include "eval/paper_results.h"
#include "eval/wikitext.h"
#include "eval/windows.h"
#include "runtime/loaded_model.h"
#include "runtime/ranks.h"

namespace teratron {
namespace {

struct EvalWikitext103Options : ScoringOptions {
  std::filesystem::path data;
  TextFormat format = TextFormat::kAuto;
  bool count_only = false;

  EvalWikitext103Options() { stride = 32; }
  Faults faults() const {
    constexpr Flag kCountOnly{"count-only"};
    Faults faults = ScoringOptions::faults();
    faults.add_if(stride == 0, "{} is 0; it must be at least 1", Flag{"overlapping-eval"});
    faults.add_if(count_only && tokenizer.empty(), "{} needs {} DIR", kCountOnly, Flag{"tokenizer"});
    faults.add_if(!count_only && load.empty(), "{} DIR is missing (or {})", Flag{"load"}, kCountOnly);
    return faults;
  }
};

FieldList fields_of(EvalWikitext103Options& o) {
  FieldList list;
  list.add("load", &o.load, "DIR", "checkpoint to evaluate, or a folder of Hugging Face's");
  list.add("data", &o.data, "FILE", "wiki.test.tokens; -: standard input").required = true;
  list.add_choice("format", o.format, {{"auto", TextFormat::kAuto}, {"text", TextFormat::kText}},
                  "auto: refuse files that are not plain text; text: take any file as plain text");
  list.add("count-only", &o.count_only, "", "count words, tokens and targets; needs --tokenizer, no checkpoint");
  add_scoring_fields(list, o, "new targets a window");
  return list;
}

std::vector<std::int32_t> encode(const Tokenizer& tokenizer, const std::string& text,
                                 const EvalWikitext103Options& options) {
  std::vector<std::int32_t> tokens = tokenizer.encode_parallel(detokenize_wikitext(text));
  if (tokens.size() < 2) throw_user_error("'{}' has no text to score", options.data.string());
  return tokens;
}

double total_loss(const EvalWikitext103Options& options, LanguageModel& model, std::span<const std::int32_t> tokens,
                  const Rank& rank) {
  const std::int64_t length = model.options().tokens;
  const auto targets = static_cast<std::int64_t>(tokens.size()) - 1;
  return score_windows(model, tokens, scoring_windows(targets, length, std::min(options.stride, length)),
                       show_scoring(rank));
}

struct Counts {
  std::int64_t words;  // of the original file
  std::size_t tokens;

  std::string line() const {
    return fmt::format("{} original tokens, {} tokens, {} targets\n", words, tokens, tokens - 1);
  }
  nlohmann::json json() const { return {{"original_tokens", words}, {"tokens", tokens}, {"targets", tokens - 1}}; }
};

void report_score(const EvalWikitext103Options& options, const Counts& counts, double sum,
                  const std::vector<std::int64_t>& peaks) {
  const double per_word = std::exp(sum / static_cast<double>(counts.words));
  const double loss = sum / static_cast<double>(counts.tokens - 1);
  nlohmann::json json = counts.json();
  json["evaluation"] = "wikitext103";
  json["loss"] = loss;
  json["perplexity"] = per_word;
  json["perplexity_per_token"] = std::exp(loss);
  json["peak_memory_bytes"] = peaks;
  report(
      options.json,
      counts.line() +
          fmt::format("perplexity {:.2f} (the paper's: loss summed over targets, divided by original tokens), {:.2f} "
                      "per token\nthe paper reports {}\n",
                      per_word, std::exp(loss), paper_result("wikitext103", "perplexity")),
      json);
}

void run(const EvalWikitext103Options& options) {
  const RankLauncher launcher(options.layout, options.backend.kind);
  launcher.require_file("--data", options.data);
  const std::string text = read_plain_text(options.data, options.format, "the text of WikiText-103");
  Counts counts{.words = count_wikitext_words(text), .tokens = 0};
  if (options.count_only) {
    counts.tokens = encode(Tokenizer::load(options.tokenizer), text, options).size();
    report(options.json, counts.line(), counts.json());
    return;
  }
  const WeightSource source = find_model(options.load, options.layout, WeightUse::kEvalWikitext103);
  const std::vector<std::int32_t> tokens = encode(load_tokenizer_for(source, options.tokenizer), text, options);
  counts.tokens = tokens.size();
  launcher.run(options_text(options), [&](const Rank& rank) {
    const LoadedModel model = load_model(source, options.executor_options(), options.backend, rank, kEvaluationBatch);
    const double sum = total_loss(options, *model.model, tokens, rank);
    const std::vector<std::int64_t> peaks = rank.peak_memory(*model.backend);
    if (rank.is_first()) report_score(options, counts, sum, peaks);
  });
}

}  // namespace

Command eval_wikitext103_command() {
  return make_command<EvalWikitext103Options>("eval wikitext103",
                                              "measures perplexity by the Megatron-LM paper's rules", run);
}

}  // namespace teratron
