// teratron generate: continues a prompt, streamed to the terminal.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/monotonic_clock.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "eval/generation.h"
#include "runtime/loaded_model.h"
#include "runtime/ranks.h"
#include "tokenizer/stream_decoder.h"

namespace teratron {
namespace {

struct GenerateOptions {
  std::filesystem::path load, tokenizer, json;
  std::string prompt;
  GenerationSettings settings;
  std::int64_t seed = 1234;
  LayoutSettings layout;
  BackendSettings backend;
  bool ignore_end = false;

  Faults faults() const {
    Faults faults = settings.sampling.faults();
    faults.add(layout.faults());
    faults.add(backend.faults());
    return faults;
  }
};

FieldList fields_of(GenerateOptions& o) {
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
  add_model_parallel_fields(list, o.layout);
  add_threads_field(list, o.layout);
  add_json_field(list, o.json);
  add_loaded_precision_fields(list, o.backend);
  add_backend_fields(list, o.backend);
  return list;
}

std::vector<std::int32_t> prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<std::int32_t> tokens = tokenizer.encode(prompt, SpecialText::kToken);
  if (!tokens.empty()) return tokens;
  if (!tokenizer.end_of_text())
    throw_user_error("--prompt is empty and the tokenizer has no end-of-text to start from");
  return {*tokenizer.end_of_text()};
}

// Where the first rank puts the text; the others draw the same tokens and keep quiet.
class Output {
 public:
  Output(const GenerateOptions& options, const Tokenizer& tokenizer, bool is_first)
      : decoder_(tokenizer), shows_(is_first && options.json != "-") {
    show(options.prompt);
  }
  void push(std::int32_t token) {
    tokens_.push_back(token);
    hand_out(decoder_.push(token));
  }
  void finish() {
    hand_out(decoder_.finish());
    show("\n");
  }
  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  const std::string& text() const { return text_; }

 private:
  void hand_out(const std::string& piece) {
    text_ += piece;
    show(piece);
  }
  void show(const std::string& piece) const {
    if (shows_) print_result(piece);
  }

  StreamDecoder decoder_;
  bool shows_;
  std::string text_;
  std::vector<std::int32_t> tokens_;
};

void run_rank(const GenerateOptions& options, const CheckpointInfo& checkpoint, const Tokenizer& tokenizer,
              const Rank& rank) {
  GenerationSettings settings = options.settings;
  settings.sampling.seed = static_cast<std::uint64_t>(options.seed);
  if (!options.ignore_end) settings.stop = tokenizer.end_of_text();
  const LoadedModel model =
      load_model(checkpoint, {.purpose = Purpose::kGeneration, .tokens = 64, .logits_chunk = 1}, options.backend, rank);
  const std::vector<std::int32_t> prompt = prompt_tokens(tokenizer, options.prompt);
  Output output(options, tokenizer, rank.is_first());
  const double start = monotonic_seconds();
  generate(*model.model, prompt, settings, [&](std::int32_t token) { output.push(token); });
  output.finish();
  const double seconds = monotonic_seconds() - start;
  const std::vector<std::int64_t> peaks = rank.peak_memory(*model.backend);
  if (!rank.is_first()) return;
  const nlohmann::json json = {{"prompt_tokens", prompt},
                               {"tokens", output.tokens()},
                               {"text", output.text()},
                               {"tokens_per_second", static_cast<double>(output.tokens().size()) / seconds},
                               {"peak_memory_bytes", peaks}};
  report(options.json, "", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void run(const GenerateOptions& options) {
  const RankLauncher launcher(options.layout.threads, options.backend.backend);
  const CheckpointInfo checkpoint = find_model(options.load, options.layout);
  const Tokenizer tokenizer = load_tokenizer_for(checkpoint, options.tokenizer);
  GenerateOptions shown = options;
  launcher.run(options.layout.mesh(), to_toml(fields_of(shown)),
               [&](const Rank& rank) { run_rank(options, checkpoint, tokenizer, rank); });
}

}  // namespace

Command generate_command() {
  return make_command<GenerateOptions>("generate", "continues a prompt with a trained model", run);
}

}  // namespace teratron
