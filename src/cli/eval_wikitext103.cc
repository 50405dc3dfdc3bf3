// teratron eval wikitext103: perplexity by the Megatron-LM paper's rules (eval/wikitext.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/threads.h"
#include "cli/commands.h"
#include "cli/loaded_model.h"
#include "cli/report.h"
#include "cli/scoring.h"
#include "eval/wikitext.h"
#include "eval/windows.h"
#include "telemetry/peak_memory.h"

namespace teratron {
namespace {

struct Options : ScoringOptions {
  std::filesystem::path data;
  bool count_only = false;

  Options() { stride = 32; }
  std::vector<std::string> faults() const {
    std::vector<std::string> faults = ScoringOptions::faults();
    if (stride == 0) faults.emplace_back("--overlapping-eval is 0; it must be at least 1");
    if (count_only && tokenizer.empty()) faults.emplace_back("--count-only needs --tokenizer DIR");
    if (!count_only && load.empty()) faults.emplace_back("--load DIR is missing (or --count-only)");
    return faults;
  }
};

FieldList fields_of(Options& o) {
  FieldList list;
  list.add("load", &o.load, "DIR", "checkpoint to evaluate");
  list.add("data", &o.data, "FILE", "wiki.test.tokens").required = true;
  list.add("count-only", &o.count_only, "", "count words, tokens and targets; needs --tokenizer, no checkpoint");
  add_scoring_fields(list, o, "new targets a window");
  return list;
}

std::vector<std::int32_t> encode(const Tokenizer& tokenizer, const std::string& text, const Options& options) {
  std::vector<std::int32_t> tokens = tokenizer.encode_parallel(detokenize_wikitext(text));
  if (tokens.size() < 2) throw_user_error("'{}' has no text to score", options.data.string());
  return tokens;
}

double total_loss(const Options& options, const LoadedModel& model, std::span<const std::int32_t> tokens) {
  const auto targets = static_cast<std::int64_t>(tokens.size()) - 1;
  const std::int64_t length = model.runner->options().tokens;
  const ScoringProgress progress(targets);
  return score_windows(*model.runner, tokens, scoring_windows(targets, length, std::min(options.stride, length)),
                       [&](std::int64_t scored, double sum) { progress.show(scored, sum); });
}

void run(const Options& options) {
  if (options.threads > 0) set_thread_count(static_cast<int>(options.threads));
  const std::string text = read_file(options.data);
  const std::int64_t words = count_wikitext_words(text);
  const auto counts = [&](std::size_t tokens) {
    return nlohmann::json{{"original_tokens", words}, {"tokens", tokens}, {"targets", tokens - 1}};
  };
  const auto counts_line = [&](std::size_t tokens) {
    return fmt::format("{} original tokens, {} tokens, {} targets\n", words, tokens, tokens - 1);
  };
  if (options.count_only) {
    const std::size_t tokens = encode(Tokenizer::load(options.tokenizer), text, options).size();
    report(options.json, counts_line(tokens), counts(tokens).dump());
    return;
  }
  const LoadedModel model = load_model(options.load, options.runner_options(), options.guard_memory);
  const std::vector<std::int32_t> tokens = encode(load_tokenizer_for(model, options.tokenizer), text, options);
  const double sum = total_loss(options, model, tokens);
  const double per_word = std::exp(sum / static_cast<double>(words));
  const double per_token = std::exp(sum / static_cast<double>(tokens.size() - 1));
  nlohmann::json json = counts(tokens.size());
  json["loss"] = sum / static_cast<double>(tokens.size() - 1);
  json["perplexity"] = per_word;
  json["perplexity_per_token"] = per_token;
  json["peak_memory_bytes"] = {peak_memory_bytes()};
  report(
      options.json,
      counts_line(tokens.size()) +
          fmt::format("perplexity {:.2f} (the paper's: loss summed over targets, divided by original tokens), {:.2f} "
                      "per token\nthe paper reports 19.31 (355M), 12.76 (2.5B), 10.81 (8.3B)\n",
                      per_word, per_token),
      json.dump());
}

}  // namespace

Command eval_wikitext103_command() {
  return make_command("eval wikitext103", "measures perplexity by the Megatron-LM paper's rules", run);
}

}  // namespace teratron
