// teratron embed: a vector for each line of a text, by a BERT.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files/free_place.h"
#include "base/files/output_lock.h"
#include "base/host/monotonic_clock.h"
#include "base/host/standard_streams.h"
#include "checkpoint/hugging_face/sentence_transformer.h"
#include "cli/commands.h"
#include "cli/generate/letter_case.h"
#include "cli/report.h"
#include "cli/text_format.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "data/text/text_list.h"
#include "eval/text_vectors.h"
#include "runtime/loaded_model.h"
#include "runtime/ranks.h"

namespace teratron {
namespace {

struct EmbedOptions {
  std::filesystem::path text, load, tokenizer, out, json;
  TextFormat format = TextFormat::kAuto;
  std::string json_key = "text";
  TextVectorSettings vectors;
  bool gives_pooling = false, gives_normalize = false, overwrite = false;
  std::int64_t seq_length = 0, batch = 32;
  LayoutSettings layout;
  BackendSettings backend;

  Faults faults() const;
};

std::vector<std::pair<std::string, Pooling>> pooling_choices() {
  return {std::begin(kPoolingNames), std::end(kPoolingNames)};
}

Faults EmbedOptions::faults() const {
  Faults faults = layout.faults();
  faults.add(backend.faults());
  add_output_faults(faults, "--out", out, json);
  constexpr std::array<std::string_view, 6> kOthers = {".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet"};
  faults.add_if(std::ranges::find(kOthers, out.extension().string()) != kOthers.end(),
                "{} {} would hold NumPy's .npy in spite of its name; call it .npy, which numpy.load reads", Flag{"out"},
                out.string());
  return faults;
}

FieldList fields_of(EmbedOptions& o) {
  FieldList list;
  list.add_positional(&o.text, "TEXT",
                      "texts, one a line, or JSON lines; plain or compressed (gzip, zstd); -: standard input");
  list.add("load", &o.load, "DIR", "checkpoint of a BERT, or a folder of Hugging Face's").required = true;
  list.add("out", &o.out, "FILE", "the vectors, [lines, hidden] in float32, as NumPy's .npy; -: standard output")
      .writes()
      .required = true;
  add_overwrite_field(list, o.overwrite);
  list.add("tokenizer", &o.tokenizer, "DIR", "default: the tokenizer saved with the model");
  add_text_format_fields(list, o.format, o.json_key);
  // The defaults of the next three are those of a sentence-transformers folder.
  list.add_choice("pooling", o.vectors.pooling, pooling_choices(),
                  "a text's vector: the mean of its tokens' outputs, the output of [CLS], .., by "
                  "sentence-transformers' names; without "
                  "the flag, as its folders say")
      .when_set = [&o] { o.gives_pooling = true; };
  list.add("normalize", &o.vectors.normalize, "",
           "vectors have length 1, so that products are cosines; --normalize=false: not even where the folder says so")
      .when_set = [&o] { o.gives_normalize = true; };
  list.add("seq-length", &o.seq_length, "N",
           "tokens of a text at most, with [CLS] and [SEP]; 0: as the folder says, else the model's positions")
      .between(0);
  list.add("batch-size", &o.batch, "N", "texts computed at a time").between(1, 1 << 16);
  add_model_parallel_fields(list, o.layout);
  add_process_fields(list, o.layout);
  add_json_field(list, o.json);
  add_loaded_backend_fields(list, o.backend);
  return list;
}

// Takes settings of the folder that the flags leave open. Returns a line for people about them and about other flags.
std::string take_from(const SentenceTransformer& folder, EmbedOptions& options) {
  std::string given;
  const auto choose = [&](bool is_given, auto& value, const auto& there, const std::string& flag) {
    if (!is_given) value = there;
    if (is_given && value != there) given += (given.empty() ? "" : " ") + flag;
  };
  choose(options.gives_pooling, options.vectors.pooling, folder.pooling,
         fmt::format("--pooling {}", name_of(options.vectors.pooling)));
  choose(options.gives_normalize, options.vectors.normalize, folder.normalize,
         fmt::format("--normalize={}", options.vectors.normalize));
  choose(options.seq_length > 0, options.seq_length, folder.max_tokens,
         fmt::format("--seq-length {}", options.seq_length));
  std::string text = fmt::format("'{}' is a sentence-transformer: --pooling {}{}", options.load.string(),
                                 name_of(folder.pooling), folder.normalize ? " --normalize" : "");
  if (folder.max_tokens > 0) text += fmt::format(" --seq-length {}", folder.max_tokens);
  if (!folder.prompt.empty()) text += fmt::format(", and its prompt \"{}\" before each text", folder.prompt);
  return given.empty() ? text : fmt::format("{}; but {}, as given", text, given);
}

// UserError: more tokens than the model has positions, or too few for [CLS] and [SEP].
void require_positions(const EmbedOptions& options, const WeightSource& source) {
  const std::int64_t positions = source.model.max_position_embeddings;
  if (options.seq_length <= positions && options.seq_length != 1) return;
  throw_user_error("--seq-length {} must be from 2 to the {} positions of the model in '{}'", options.seq_length,
                   positions, source.folder.string());
}

// Most tokens of a text, including [CLS] and [SEP].
std::int64_t most_tokens(const EmbedOptions& options, const WeightSource& source) {
  const std::int64_t positions = source.model.max_position_embeddings;
  return options.seq_length == 0 ? positions : std::min(options.seq_length, positions);
}

// Data that all ranks of a process share.
struct EmbedJob {
  EmbedOptions options;  // with the folder's settings filled in
  WeightSource source;
  TokenizedTexts texts;
};

TokenizedTexts read_texts(const EmbedOptions& options, const WeightSource& source,
                          const std::optional<SentenceTransformer>& folder) {
  const Tokenizer tokenizer = load_tokenizer_for(source, options.tokenizer);
  if (folder) require_case_of(*folder, tokenizer, options.load);
  const std::vector<std::string> texts =
      read_text_list(options.text, options.format, {.names = {options.json_key}}, BlankLines::kKeep);
  return tokenize_texts(tokenizer, std::vector<std::string_view>(texts.begin(), texts.end()),
                        most_tokens(options, source), folder ? folder->prompt : "");
}

void report_cut_texts(const EmbedJob& job) {
  if (job.texts.cut == 0) return;
  report_to_user(fmt::format("warning: {} of {} cut: more than {} tokens, with [CLS] and [SEP]; the ends are not read",
                             job.texts.cut, counted(std::ssize(job.texts.ids), "text"),
                             most_tokens(job.options, job.source)));
}

void report_vectors(const EmbedJob& job, double seconds, const std::vector<std::int64_t>& peaks) {
  const EmbedOptions& options = job.options;
  const std::size_t texts = job.texts.ids.size();
  const nlohmann::ordered_json json = {{"texts", texts},
                                       {"tokens", job.texts.tokens},
                                       {"cut_texts", job.texts.cut},
                                       {"hidden_size", job.source.model.hidden_size},
                                       {"pooling", name_of(options.vectors.pooling)},
                                       {"normalized", options.vectors.normalize},
                                       {"seq_length", most_tokens(options, job.source)},
                                       {"out", options.out.string()},
                                       {"texts_per_second", static_cast<double>(texts) / seconds},
                                       {"tokens_per_second", static_cast<double>(job.texts.tokens) / seconds},
                                       {"peak_memory_bytes", peaks}};
  report_beside(
      options.out, options.json,
      fmt::format("{} of {} in {}: {}\n", counted(static_cast<std::int64_t>(texts), "vector"),
                  counted(job.source.model.hidden_size, "value"), readable_duration(seconds), options.out.string()),
      json);
}

void run_rank(const EmbedJob& job, const Rank& rank) {
  const auto texts = static_cast<std::int64_t>(job.texts.ids.size()), hidden = job.source.model.hidden_size;
  const ExecutorOptions executor{.purpose = Purpose::kEvaluation,
                                 .batch = std::min(job.options.batch, texts),
                                 .tokens = job.texts.longest,
                                 .logits_chunk = 1,
                                 .packed_weights = keep_packed(job.options.backend, WeightPacking::kMostUsefulRows)};
  const LoadedEncoder encoder = load_encoder(job.source, executor, job.options.backend, rank, "--batch-size");
  std::vector<float> vectors(rank.is_first() ? static_cast<std::size_t>(texts * hidden) : 0);
  const double start = monotonic_seconds();
  make_text_vectors(
      *encoder.model, job.texts, job.options.vectors,
      [&](std::size_t number, std::span<const float> vector) {
        if (!rank.is_first()) return;
        std::ranges::copy(vector, vectors.begin() + static_cast<std::ptrdiff_t>(number * vector.size()));
      },
      [&, show = show_share("embedding texts", rank.is_first())](std::size_t done) {
        show(static_cast<double>(done) / static_cast<double>(texts));
      });
  const double seconds = monotonic_seconds() - start;
  const std::vector<std::int64_t> peaks = rank.peak_memory(*encoder.backend);
  if (!rank.is_first()) return;
  write_npy(job.options.out, hidden, vectors);
  report_vectors(job, seconds, peaks);
}

void run(const EmbedOptions& options) {
  const RankLauncher launcher(options.layout, options.backend.kind);
  launcher.require_file("TEXT", options.text);
  require_free(std::array{options.out}, options.overwrite);
  require_writable(options.out);
  EmbedOptions filled = options;
  std::optional<SentenceTransformer> folder = read_sentence_transformer(options.load);
  WeightSource source = find_encoder(folder ? folder->encoder : options.load, options.layout, WeightUse::kEmbed);
  if (!folder) folder = learned_vectors(source.folder, source.model);
  const std::string note = folder ? take_from(*folder, filled) : "";
  require_positions(options, source);
  TokenizedTexts texts = read_texts(filled, source, folder);
  const EmbedJob job{.options = std::move(filled), .source = std::move(source), .texts = std::move(texts)};
  const std::optional<OutputLock> lock = launcher.lock(options.out);
  if (launcher.is_first_process()) {
    if (folder) report_to_user(note);
    report_cut_texts(job);
  }
  launcher.run(options_text(options), [&](const Rank& rank) { run_rank(job, rank); });
}

}  // namespace

Command embed_command() { return make_command<EmbedOptions>("embed", "makes a vector of each text with a BERT", run); }

}  // namespace teratron
