// teratron generate: continues prompts; a single one streamed to the terminal.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/files/output_lock.h"
#include "base/host/monotonic_clock.h"
#include "cli/commands.h"
#include "cli/generate/chat.h"
#include "cli/generate/generate_output.h"
#include "cli/report.h"
#include "data/text/end_tokens.h"
#include "data/text/text_list.h"
#include "eval/generation/generator.h"
#include "runtime/loaded_model.h"
#include "runtime/ranks.h"

namespace teratron {

Faults GenerateOptions::faults() const {
  Faults faults = settings.sampling.faults();
  faults.add(layout.faults());
  faults.add(backend.faults());
  faults.add_if(!prompts.empty() && !prompt.empty(), "{} and {} exclude each other", Flag{"prompt"}, Flag{"prompts"});
  faults.add_if(std::ranges::count(stop_texts, "") > 0, "{} is empty; leave it out, or give a text", Flag{"stop"});
  faults.add_if(chat && (!prompt.empty() || !prompts.empty() || samples > 1 || !stop_texts.empty() || !json.empty()),
                "{} reads what is said from standard input and shows one answer to each line; leave out {}, {}, {}, {} "
                "and {}",
                Flag{"chat"}, Flag{"prompt"}, Flag{"prompts"}, Flag{"num-samples"}, Flag{"stop"}, Flag{"json"});
  faults.add_if(chat && (settings.prompt_log_probabilities || long_prompt != LongPrompt::kRefuse || batch > 0),
                "{} forgets the oldest of a long talk, and makes one answer at a time; leave out {}, {} and {}",
                Flag{"chat"}, Flag{"prompt-logprobs"}, Flag{"truncate-prompt"}, Flag{"batch-size"});
  faults.add_if(!chat && settings.prompt_log_probabilities && json.empty(), "{} are written to {} LINES; give it, too",
                Flag{"prompt-logprobs"}, Flag{"json"});
  faults.add_if(!chat && (!system.empty() || !chat_template.empty()), "{} and {} need {}", Flag{"system"},
                Flag{"chat-template"}, Flag{"chat"});
  return faults;
}

FieldList fields_of(GenerateOptions& o) {
  FieldList list;
  list.group("Prompts");
  list.add("load", &o.load, "DIR", "checkpoint to generate with, or a folder of Hugging Face's").required = true;
  list.add("prompt", &o.prompt, "TEXT", "text to continue; empty: start of a document");
  list.add("prompts", &o.prompts, "FILE", "many prompts, one per line; - is standard input; blank lines are skipped");
  list.add_choice("prompts-format", o.prompt_format,
                  {{"auto", TextFormat::kAuto},
                   {"lines", TextFormat::kText},
                   {"jsonl", TextFormat::kJsonLines},
                   {"text", TextFormat::kText}},
                  "lines or text: a prompt a line; jsonl: {\"prompt\": TEXT} or {\"text\": TEXT} a line; auto: what is "
                  "seen in FILE, whatever its name")
      .alias = "format";
  list.add_choice(
      "truncate-prompt", o.long_prompt,
      {{"no", LongPrompt::kRefuse}, {"left", LongPrompt::kCutLeft}, {"right", LongPrompt::kCutRight}},
      "end at which a prompt longer than the context is cut; left keeps a token that begins every text; no: it is an "
      "error");
  list.add("tokenizer", &o.tokenizer, "DIR", "default: the tokenizer saved with the checkpoint");
  list.add("chat", &o.chat, "",
           "talk: answers each line of standard input by the model's chat template, with what was said before");
  list.add("system", &o.system, "TEXT", "first message of the chat, from the system");
  list.add("chat-template", &o.chat_template, "FILE", "template in place of the tokenizer's");
  list.group("Generation");
  list.add("max-new-tokens", &o.settings.max_new_tokens, "N", "most tokens to add").between(0);
  list.add("num-samples", &o.samples, "N", "texts for each prompt").between(1, 1 << 24);
  list.add("stop", &o.stop_texts, "TEXT", "ends a text where TEXT would come; may be given several times").repeats =
      true;
  list.add("ignore-end-of-text", &o.ignore_end, "", "go on after a token that ends a text");
  list.add("temperature", &o.settings.sampling.temperature, "X", "0: always the likeliest token");
  list.add("top-k", &o.settings.sampling.top_k, "N", "draw from the N likeliest; 0: from all");
  list.add("top-p", &o.settings.sampling.top_p, "P", "then from the likeliest that together reach P");
  list.add("repetition-penalty", &o.settings.sampling.repetition_penalty, "X",
           "above 1: tokens that were there become less likely (arXiv 1909.05858)");
  list.add("presence-penalty", &o.settings.sampling.presence_penalty, "X",
           "takes X from the logits of tokens that the text has made (OpenAI's)");
  list.add("frequency-penalty", &o.settings.sampling.frequency_penalty, "X",
           "takes X from them for each time that it made them");
  list.add("seed", &o.seed, "N", "seed of the draws");
  list.add("prompt-logprobs", &o.settings.prompt_log_probabilities, "",
           "log-probabilities of the prompt, too, in the JSON");
  list.add("batch-size", &o.batch, "N", "texts at a time, without effect on them; 0: at most 32 within a GiB")
      .between(0);
  add_model_parallel_fields(list, o.layout);
  add_process_fields(list, o.layout);
  add_json_lines_field(list, o.json);
  add_loaded_backend_fields(list, o.backend);
  return list;
}

namespace {

// Texts to generate, the same on all ranks.
struct GenerateWork {
  std::vector<GeneratePrompt> prompts;
  std::vector<GenerationRequest> requests;  // samples of the first prompt, of the second, ..
};

GenerateWork work_of(const GenerateOptions& options, const Tokenizer& tokenizer, const ModelConfig& model) {
  const bool is_one = options.prompts.empty();
  const TextKeys keys{.names = {"prompt", "text"}, .advice = "put the text to continue under one of them"};
  const std::vector<std::string> texts =
      is_one ? std::vector{options.prompt}
             : read_text_list(options.prompts, options.prompt_format, keys, BlankLines::kSkip, "--prompts-format");
  GenerateWork work;
  for (std::uint32_t number = 0; number < texts.size(); ++number) {
    std::vector<std::int32_t> tokens = prompt_tokens(tokenizer, texts[number]);
    const std::string name = is_one ? "the prompt" : fmt::format("prompt {}", number + 1);
    const std::int64_t lost =
        fit_prompt(tokens, model.max_position_embeddings, options.long_prompt, tokenizer.beginning_of_text(), name);
    work.prompts.push_back({.text = texts[number], .tokens_removed = lost});
    for (std::uint32_t sample = 0; sample < options.samples; ++sample) {
      work.requests.push_back({.prompt = tokens, .number = number, .sample = sample});
    }
  }
  return work;
}

GenerationSettings settings_of(const GenerateOptions& options, const Tokenizer& tokenizer,
                               std::vector<std::int32_t> ends) {
  GenerationSettings settings = options.settings;
  settings.sampling.seed = static_cast<std::uint64_t>(options.seed);
  settings.tokens = tokenizer.vocab_size();
  settings.log_probabilities = !options.json.empty();
  settings.prompt_log_probabilities = settings.prompt_log_probabilities && settings.log_probabilities;
  if (options.ignore_end) return settings;
  settings.stop = tokenizer.end_of_text();
  settings.other_stops = std::move(ends);
  return settings;
}

ExecutorOptions executor_options_of(const GenerateOptions& options, const GenerateWork& work,
                                    const GenerationSettings& settings, const ModelConfig& model) {
  ExecutorOptions executor{.purpose = Purpose::kGeneration, .tokens = kPromptPiece};
  executor.cache_tokens = cache_tokens_for(work.requests, settings, model);
  const std::int64_t bytes = size_of(options.backend.compute_dtype());
  executor.caches = options.batch > 0 ? std::min(options.batch, static_cast<std::int64_t>(work.requests.size()))
                                      : choose_caches(work.requests.size(), executor.cache_tokens, model, bytes);
  executor.logits_chunk = executor.caches;
  return executor;
}

void run_rank(const GenerateOptions& options, const WeightSource& source, const Tokenizer& tokenizer,
              const GenerateWork& work, const GenerationSettings& settings, const Rank& rank) {
  const LoadedModel model = load_model(source, executor_options_of(options, work, settings, source.model),
                                       options.backend, rank, "--batch-size");
  GenerateOutput output(options, tokenizer, work.prompts, work.requests, rank.is_first());
  const double start = monotonic_seconds();
  generate_all(*model.model, work.requests, settings, output.events());
  const double seconds = monotonic_seconds() - start;
  const std::vector<std::int64_t> peaks = rank.peak_memory(*model.backend);
  output.finish({{"tokens_per_second", static_cast<double>(output.tokens()) / seconds}, {"peak_memory_bytes", peaks}});
}

void run_chat(const GenerateOptions& options, const WeightSource& source, const Tokenizer& tokenizer,
              const RankLauncher& launcher) {
  const ChatRules rules = find_chat_rules(source.folder, options.tokenizer, options.chat_template, tokenizer);
  if (!rules.form) throw_user_error("{}; give one by --chat-template FILE", rules.why_none);
  launcher.run(options_text(options), [&](const Rank& rank) {
    // A second cache keeps the beginning that the next prompt shares.
    const ExecutorOptions executor{.purpose = Purpose::kGeneration,
                                   .tokens = 64,
                                   .caches = 2,
                                   .cache_tokens = source.model.max_position_embeddings,
                                   .logits_chunk = 2};
    const LoadedModel model = load_model(source, executor, options.backend, rank);
    talk(*model.model, tokenizer, rules, settings_of(options, tokenizer, rules.ends), options.system, rank);
  });
}

// Whether standard input holds unread data. An empty open pipe is usual where a script starts the program.
bool standard_input_waits() {
  struct stat status {};
  if (fstat(STDIN_FILENO, &status) != 0) return false;
  if (S_ISREG(status.st_mode)) return lseek(STDIN_FILENO, 0, SEEK_CUR) < status.st_size;
  int bytes = 0;
  return S_ISFIFO(status.st_mode) && ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0;
}

// Notes that standard input is not read although it holds data and there is no prompt. Returns whether it did.
bool report_unread_input(const GenerateOptions& options, const RankLauncher& launcher) {
  if (!options.prompt.empty() || !options.prompts.empty() || !launcher.is_first_process()) return false;
  if (!standard_input_waits()) return false;
  fmt::print(stderr, "note: standard input is not read; --prompts - continues each of its lines\n");
  return true;
}

void run(const GenerateOptions& options) {
  const RankLauncher launcher(options.layout, options.backend.kind);
  const std::optional<OutputLock> lock = launcher.lock(options.json);
  launcher.require_file("--prompts", options.prompts);
  const WeightSource source = find_model(options.load, options.layout, WeightUse::kGenerate);
  const Tokenizer tokenizer = load_tokenizer_for(source, options.tokenizer);
  if (options.chat) return run_chat(options, source, tokenizer, launcher);
  const GenerateWork work = work_of(options, tokenizer, source.model);
  const GenerationSettings settings = settings_of(options, tokenizer, end_tokens_of(source.folder, tokenizer));
  const bool is_reported = report_unread_input(options, launcher);
  launcher.run(options_text(options),
               [&](const Rank& rank) { run_rank(options, source, tokenizer, work, settings, rank); });
  if (!is_reported) report_unread_input(options, launcher);  // data may have come late
}

}  // namespace

Command generate_command() {
  return make_command<GenerateOptions>("generate", "continues prompts with a trained model", run);
}

}  // namespace teratron
