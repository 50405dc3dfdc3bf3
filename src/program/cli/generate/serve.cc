// teratron serve: OpenAI's interface in front of a model.
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/json_string.h"
#include "checkpoint/hugging_face/sentence_transformer.h"
#include "cli/commands.h"
#include "cli/generate/letter_case.h"
#include "cli/report.h"
#include "data/text/end_tokens.h"
#include "eval/generation/generator.h"
#include "model/family.h"
#include "runtime/end_signals.h"
#include "runtime/loaded_model.h"
#include "runtime/ranks.h"
#include "serve/server.h"
#include "serve/text/text_model.h"
#include "serve/vectors/vector_model.h"

namespace teratron {
namespace {

struct ServeOptions {
  std::filesystem::path load, tokenizer, chat_template, json;
  std::string host = "127.0.0.1", api_key, name;
  std::int64_t port = 8080, slots = 0, queue = 64, prompt_tokens = 256, context = 0;
  bool gives_prompt_tokens = false;
  LayoutSettings layout;
  BackendSettings backend;

  Faults faults() const;
};

Faults ServeOptions::faults() const {
  Faults faults = layout.faults();
  faults.add(backend.faults());
  faults.add_if(host.empty(), "{} is empty; 127.0.0.1 is this machine alone, 0.0.0.0 all its networks", Flag{"host"});
  return faults;
}

FieldList fields_of(ServeOptions& o) {
  FieldList list;
  list.group("Server");
  list.add("load", &o.load, "DIR", "checkpoint to serve, or a folder of Hugging Face's; a BERT makes vectors")
      .required = true;
  list.add("tokenizer", &o.tokenizer, "DIR", "default: the tokenizer saved with the model");
  list.add("chat-template", &o.chat_template, "FILE",
           "in Jinja's language, of /v1/chat/completions; default: the tokenizer's");
  list.add("host", &o.host, "ADDRESS", "address to listen at; 0.0.0.0: all networks of this machine");
  list.add("port", &o.port, "N", "port to listen at; 0: any free one, which the first line tells").between(0, 65535);
  list.add("api-key", &o.api_key, "KEY", "clients must send it; empty: none is asked for");
  list.add("model-name", &o.name, "NAME", "the model's name in requests; default: the folder's");
  list.add("batch-size", &o.slots, "N", "texts computed at a time; 0: at most 32 whose caches fit a GiB")
      .between(0, 1 << 12);
  list.add("queue", &o.queue, "N", "texts that may wait besides; one more request is refused (429)")
      .between(0, 1 << 12);
  list.add("context", &o.context, "N",
           "most tokens of a text, new ones included; 0: as a folder of sentence-transformers says, else the model's "
           "positions")
      .between(0);
  list.add("prompt-tokens", &o.prompt_tokens, "N",
           "tokens of new prompts read between two tokens of texts in progress; 0: all")
      .between(0)
      .when_set = [&o] { o.gives_prompt_tokens = true; };
  add_model_parallel_fields(list, o.layout);
  add_process_fields(list, o.layout);
  add_json_field(list, o.json);
  add_loaded_backend_fields(list, o.backend);
  return list;
}

// The first rank listens and decides; the others compute with it.
void serve(const ServeOptions& options, std::int64_t texts, ServedModel& model, const Rank& rank) {
  if (!rank.is_first()) return model.run();
  // A connection for each text that may wait, and some that are refused.
  constexpr std::int64_t kMoreConnections = 16;
  const ServerSettings settings{.host = options.host,
                                .port = static_cast<int>(options.port),
                                .api_key = options.api_key,
                                .model_name = options.name,
                                .connections = static_cast<std::size_t>(texts + kMoreConnections)};
  Server server(settings, model);
  EndSignals signals(/*says=*/false);
  signals.listen();
  const nlohmann::ordered_json place = {
      {"host", settings.host}, {"port", server.port()}, {"model", settings.model_name}};
  report(options.json,
         fmt::format("'{}' is served at http://{}:{}/v1; Ctrl-C ends it\n", settings.model_name, settings.host,
                     server.port()),
         json_text(place));
  server.run([] { return EndSignals::came() != 0; });
}

void serve_texts(const ServeOptions& options, const WeightSource& source, const Tokenizer& tokenizer,
                 const ChatRules& chat, const Rank& rank) {
  const std::int64_t positions = source.model.max_position_embeddings;
  ExecutorOptions executor{.purpose = Purpose::kGeneration, .tokens = kPromptPiece};
  executor.cache_tokens = options.context == 0 ? positions : options.context;
  executor.caches = options.slots > 0 ? options.slots
                                      : choose_caches(1 << 10, executor.cache_tokens, source.model,
                                                      size_of(options.backend.compute_dtype()));
  executor.logits_chunk = executor.caches;
  const LoadedModel loaded = load_model(source, executor, options.backend, rank, "--batch-size");
  const std::int64_t texts = executor.caches + options.queue;
  TextModel model(options.name, *loaded.model, tokenizer, static_cast<std::size_t>(texts), options.prompt_tokens,
                  end_tokens_of(source.folder, tokenizer), chat);
  serve(options, texts, model, rank);
}

VectorSettings vector_settings(const ServeOptions& options, const std::optional<SentenceTransformer>& folder,
                               const WeightSource& source, const Tokenizer& tokenizer) {
  VectorSettings settings{.most_tokens = source.model.max_position_embeddings,
                          .most_requests = static_cast<std::size_t>(options.queue + 1)};
  if (options.context > 0) settings.most_tokens = options.context;
  if (!folder) return settings;
  require_case_of(*folder, tokenizer, options.load);
  settings.vectors = {.pooling = folder->pooling, .normalize = folder->normalize};
  if (options.context == 0 && folder->max_tokens > 0) {
    settings.most_tokens = std::min(settings.most_tokens, folder->max_tokens);
  }
  settings.prompt = folder->prompt;
  return settings;
}

void serve_vectors(const ServeOptions& options, const VectorSettings& settings, const WeightSource& source,
                   const Tokenizer& tokenizer, const Rank& rank) {
  constexpr std::int64_t kTextsAtATime = 32, kAnyRows = std::numeric_limits<std::int64_t>::max();
  const ExecutorOptions executor{.purpose = Purpose::kEvaluation,
                                 .batch = options.slots > 0 ? options.slots : kTextsAtATime,
                                 .tokens = settings.most_tokens,
                                 .logits_chunk = 1,
                                 // However large calls may be, most have one text.
                                 .packed_weights = keep_packed(options.backend, kAnyRows)};
  const LoadedEncoder loaded = load_encoder(source, executor, options.backend, rank, "--batch-size");
  VectorModel model(options.name, *loaded.model, tokenizer, settings);
  serve(options, options.queue + 1, model, rank);
}

// UserError: more tokens of a text than the model has positions, or flags of texts for a model that makes vectors.
void require_fit(const ServeOptions& options, const WeightSource& source) {
  const ModelConfig& model = source.model;
  const std::string folder = source.folder.string();
  if (options.context > model.max_position_embeddings) {
    throw_user_error("--context {} is more than the {} positions of the model in '{}'", options.context,
                     model.max_position_embeddings, folder);
  }
  if (model.family().continues_text || (options.chat_template.empty() && !options.gives_prompt_tokens)) return;
  throw_user_error("{} is of models that continue text, and the {} in '{}' makes vectors; leave it out",
                   options.chat_template.empty() ? "--prompt-tokens" : "--chat-template", model.family().title, folder);
}

void run(const ServeOptions& given) {
  const RankLauncher launcher(given.layout, given.backend.kind);
  std::optional<SentenceTransformer> folder = read_sentence_transformer(given.load);
  const std::filesystem::path weights = folder ? folder->encoder : given.load;
  const bool continues = find_weights(weights).model.family().continues_text;
  const WeightSource source = continues ? find_model(weights, given.layout, WeightUse::kGenerate)
                                        : find_encoder(weights, given.layout, WeightUse::kEmbed);
  require_fit(given, source);
  if (!folder) folder = learned_vectors(source.folder, source.model);
  const Tokenizer tokenizer = load_tokenizer_for(source, given.tokenizer);
  ServeOptions options = given;
  if (options.name.empty()) options.name = std::filesystem::weakly_canonical(options.load).filename().string();
  const ChatRules chat =
      continues ? find_chat_rules(source.folder, options.tokenizer, options.chat_template, tokenizer) : ChatRules();
  const VectorSettings vectors = continues ? VectorSettings() : vector_settings(options, folder, source, tokenizer);
  launcher.run(options_text(options), [&](const Rank& rank) {
    continues ? serve_texts(options, source, tokenizer, chat, rank)
              : serve_vectors(options, vectors, source, tokenizer, rank);
  });
}

}  // namespace

Command serve_command() {
  return make_command<ServeOptions>("serve", "serves a model by OpenAI's interface: completions, or vectors of a BERT",
                                    run);
}

}  // namespace teratron
