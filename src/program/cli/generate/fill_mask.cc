// teratron fill-mask: the likeliest words in the places of masks, by a BERT or RoBERTa.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files/output_lock.h"
#include "base/json_string.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/long_task.h"
#include "console/text_table.h"
#include "data/text/text_list.h"
#include "eval/masked_words.h"
#include "runtime/loaded_model.h"
#include "runtime/ranks.h"

namespace teratron {
namespace {

struct FillMaskOptions {
  std::filesystem::path load, tokenizer, prompts, json;
  std::string prompt;
  std::int64_t top_k = 5, batch = 32;
  LayoutSettings layout;
  BackendSettings backend;

  Faults faults() const;
};

Faults FillMaskOptions::faults() const {
  Faults faults = layout.faults();
  faults.add(backend.faults());
  faults.add_if(prompt.empty() == prompts.empty(), "give a text with [MASK] in it by {}, or several by {}",
                Flag{"prompt"}, Flag{"prompts"});
  return faults;
}

FieldList fields_of(FillMaskOptions& o) {
  FieldList list;
  list.add("load", &o.load, "DIR", "checkpoint of a BERT of pre-training, or a folder of Hugging Face's").required =
      true;
  list.add("prompt", &o.prompt, "TEXT", "text with [MASK] in place of each word to predict");
  list.add("prompts", &o.prompts, "FILE",
           "many of them: one a line, or JSON lines with it under \"prompt\" or \"text\"; - is standard input; blank "
           "lines are skipped");
  list.add("top-k", &o.top_k, "N", "words for each mask, the likeliest first").between(1, 1 << 20);
  list.add("tokenizer", &o.tokenizer, "DIR", "default: the tokenizer saved with the model");
  list.add("batch-size", &o.batch, "N", "texts computed at a time").between(1, 1 << 16);
  add_model_parallel_fields(list, o.layout);
  add_process_fields(list, o.layout);
  add_json_lines_field(list, o.json);
  add_loaded_backend_fields(list, o.backend);
  return list;
}

// Data that all ranks of a process share.
struct FillMaskJob {
  const FillMaskOptions& options;
  WeightSource source;
  Tokenizer tokenizer;
  std::vector<std::string> texts;
  std::vector<MaskedText> masked;
};

std::vector<std::string> texts_of(const FillMaskOptions& options) {
  if (options.prompts.empty()) return {options.prompt};
  return read_text_list(options.prompts, TextFormat::kAuto,
                        {.names = {"prompt", "text"}, .advice = "put the text under one of them"}, BlankLines::kSkip,
                        "");
}

using Chances = std::vector<TokenChance>;

nlohmann::ordered_json json_of(const std::string& text, const MaskedText& masked, const std::vector<Chances>& masks,
                               const Tokenizer& tokenizer) {
  nlohmann::ordered_json json = {{"text", text}, {"masks", nlohmann::ordered_json::array()}};
  for (std::size_t mask = 0; mask < masks.size(); ++mask) {
    nlohmann::ordered_json tokens = nlohmann::ordered_json::array();
    for (const TokenChance& chance : masks[mask]) {
      tokens.push_back(
          {{"token", chance.token}, {"token_str", token_text(tokenizer, chance.token)}, {"score", chance.probability}});
    }
    json["masks"].push_back({{"position", masked.masks[mask]}, {"tokens", std::move(tokens)}});
  }
  return json;
}

void report_words(const FillMaskJob& job, const std::vector<std::vector<Chances>>& words) {
  std::string table, lines;
  for (std::size_t text = 0; text < words.size(); ++text) {
    if (!lines.empty()) lines += '\n';
    lines += json_text(json_of(job.texts[text], job.masked[text], words[text], job.tokenizer));
    table += fmt::format("{}\n", job.texts[text]);
    for (std::size_t mask = 0; mask < words[text].size(); ++mask) {
      TextTable rows({Align::kRight, Align::kLeft});
      for (const TokenChance& chance : words[text][mask]) {
        rows.row({fmt::format("{:.4f}", chance.probability), token_text(job.tokenizer, chance.token)});
      }
      if (words[text].size() > 1) table += fmt::format("mask {}\n", mask + 1);
      table += rows.text();
    }
  }
  report(job.options.json, table, lines);
}

void run_rank(const FillMaskJob& job, const Rank& rank) {
  std::size_t longest = 0, masks = 0;
  for (const MaskedText& text : job.masked) {
    longest = std::max(longest, text.ids.size());
    masks = std::max(masks, text.masks.size());
  }
  const std::int64_t batch = std::min(job.options.batch, std::ssize(job.masked));
  const ExecutorOptions executor{.purpose = Purpose::kEvaluation,
                                 .batch = batch,
                                 .tokens = static_cast<std::int64_t>(longest),
                                 .logits_chunk = std::min<std::int64_t>(batch * static_cast<std::int64_t>(masks), 32)};
  const LoadedEncoder encoder = load_encoder(job.source, executor, job.options.backend, rank, "--batch-size");
  const auto words =
      fill_masks(*encoder.model, job.masked, job.options.top_k, show_share("filling masks", rank.is_first()));
  if (rank.is_first()) report_words(job, words);
}

void run(const FillMaskOptions& options) {
  const RankLauncher launcher(options.layout, options.backend.kind);
  launcher.require_file("--prompts", options.prompts);
  const std::optional<OutputLock> lock = launcher.lock(options.json);
  WeightSource source = find_encoder(options.load, options.layout, WeightUse::kFillMask);
  Tokenizer tokenizer = load_tokenizer_for(source, options.tokenizer);
  FillMaskJob job{.options = options,
                  .source = std::move(source),
                  .tokenizer = std::move(tokenizer),
                  .texts = texts_of(options),
                  .masked = {}};
  for (std::size_t number = 0; number < job.texts.size(); ++number) {
    job.masked.push_back(
        masked_text(job.tokenizer, job.texts[number], job.source.model.max_position_embeddings,
                    options.prompts.empty() ? "--prompt" : fmt::format("text {} of --prompts", number + 1)));
  }
  launcher.run(options_text(options), [&](const Rank& rank) { run_rank(job, rank); });
}

}  // namespace

Command fill_mask_command() {
  return make_command<FillMaskOptions>("fill-mask", "predicts words in the places of [MASK] with a BERT or RoBERTa",
                                       run);
}

}  // namespace teratron
