// teratron generate: continues a prompt, streamed to the terminal.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/threads.h"
#include "cli/commands.h"
#include "cli/loaded_model.h"
#include "cli/report.h"
#include "eval/generation.h"
#include "telemetry/peak_memory.h"
#include "tokenizer/stream_decoder.h"

namespace teratron {
namespace {

struct Options {
  std::filesystem::path load, tokenizer, json;
  std::string prompt;
  GenerationSettings settings;
  std::int64_t seed = 1234, threads = 0;
  bool ignore_end = false, guard_memory = false;

  std::vector<std::string> faults() const { return settings.sampling.faults(); }
};

FieldList fields_of(Options& o) {
  FieldList list;
  list.group("Generation");
  list.add("load", &o.load, "DIR", "checkpoint to generate with").required = true;
  list.add("prompt", &o.prompt, "TEXT", "text to continue; empty: start of a document");
  list.add("max-new-tokens", &o.settings.max_new_tokens, "N", "most tokens to add");
  list.add("temperature", &o.settings.sampling.temperature, "X", "0: always the likeliest token");
  list.add("top-k", &o.settings.sampling.top_k, "N", "draw from the N likeliest; 0: from all");
  list.add("top-p", &o.settings.sampling.top_p, "P", "then from the likeliest that together reach P");
  list.add("seed", &o.seed, "N", "of the draws");
  list.add("ignore-end-of-text", &o.ignore_end, "", "go on after an end of text");
  list.add("tokenizer", &o.tokenizer, "DIR", "the one saved with the checkpoint if not given");
  list.add("threads", &o.threads, "N", "0: one a core");
  add_json_field(list, o.json);
  list.add("guard-memory", &o.guard_memory, "", "keep tensors unreadable outside of operations (a test)").role =
      FieldRole::kHiddenFlag;
  return list;
}

std::vector<std::int32_t> prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<std::int32_t> tokens = tokenizer.encode(prompt);
  if (!tokens.empty()) return tokens;
  if (!tokenizer.end_of_text())
    throw_user_error("--prompt is empty and the tokenizer has no end-of-text to start from");
  return {*tokenizer.end_of_text()};
}

void run(const Options& options) {
  if (options.threads > 0) set_thread_count(static_cast<int>(options.threads));
  GenerationSettings settings = options.settings;
  settings.sampling.seed = static_cast<std::uint64_t>(options.seed);

  const LoadedModel model = load_model(options.load, {.purpose = Purpose::kGeneration, .tokens = 64, .logits_chunk = 1},
                                       options.guard_memory);
  const Tokenizer tokenizer = load_tokenizer_for(model, options.tokenizer);
  if (!options.ignore_end) settings.stop = tokenizer.end_of_text();
  const std::vector<std::int32_t> prompt = prompt_tokens(tokenizer, options.prompt);

  const bool show = options.json != "-";
  if (show) fmt::print("{}", options.prompt);
  StreamDecoder decoder(tokenizer);
  std::string text;
  std::vector<std::int32_t> tokens;
  const auto hand_out = [&](const std::string& piece) {
    text += piece;
    if (!show) return;
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    std::fflush(stdout);
  };
  const auto start = std::chrono::steady_clock::now();
  generate(*model.runner, prompt, settings, [&](std::int32_t token) {
    tokens.push_back(token);
    hand_out(decoder.push(token));
  });
  hand_out(decoder.finish());
  if (show) fmt::print("\n");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const nlohmann::json json = {{"prompt_tokens", prompt},
                               {"tokens", tokens},
                               {"text", text},
                               {"tokens_per_second", static_cast<double>(tokens.size()) / seconds},
                               {"peak_memory_bytes", {peak_memory_bytes()}}};
  report(options.json, "", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

Command generate_command() { return make_command("generate", "continues a prompt with a trained model", run); }

}  // namespace teratron
