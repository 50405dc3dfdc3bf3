// teratron embed: a vector for each line of a text, by a BERT.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/host/monotonic_clock.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/text_format.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "data/text/text_list.h"
#include "eval/npy.h"
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
  std::int64_t batch = 32;
  LayoutSettings layout;
  BackendSettings backend;

  Faults faults() const {
    Faults faults = layout.faults();
    faults.add(backend.faults());
    add_output_faults(faults, "--out", out, json);
    return faults;
  }
};

FieldList fields_of(EmbedOptions& o) {
  FieldList list;
  list.add_positional(&o.text, "TEXT",
                      "texts, one a line, or JSON lines; plain or compressed (gzip, zstd); -: standard input");
  list.add("load", &o.load, "DIR", "checkpoint of a BERT, or a folder of Hugging Face's").required = true;
  list.add("out", &o.out, "FILE", "the vectors, [lines, hidden] in float32, as NumPy's .npy; -: standard output")
      .required = true;
  list.add("tokenizer", &o.tokenizer, "DIR", "the one saved with the model if not given");
  add_text_format_fields(list, o.format, o.json_key);
  list.add_choice("pooling", o.vectors.pooling, {{"mean", Pooling::kMean}, {"cls", Pooling::kCls}},
                  "a text's vector: the mean of all its tokens', or that of [CLS] before it");
  list.add("normalize", &o.vectors.normalize, "", "vectors have length 1, so that products are cosines");
  list.add("batch-size", &o.batch, "N", "texts computed at a time").between(1, 1 << 16);
  add_model_parallel_fields(list, o.layout);
  add_threads_field(list, o.layout);
  add_json_field(list, o.json);
  add_loaded_precision_fields(list, o.backend);
  add_backend_fields(list, o.backend);
  return list;
}

// What all ranks of a process read.
struct EmbedJob {
  const EmbedOptions& options;
  WeightSource source;
  TokenizedTexts texts;
};

TokenizedTexts read_texts(const EmbedOptions& options, const WeightSource& source) {
  const Tokenizer tokenizer = load_tokenizer_for(source.folder, source.model, options.tokenizer);
  const std::vector<std::string> texts =
      read_text_list(options.text, options.format, {.names = {options.json_key}}, BlankLines::kKeep);
  return tokenize_texts(tokenizer, std::vector<std::string_view>(texts.begin(), texts.end()),
                        source.model.max_position_embeddings);
}

void tell_of_cut_texts(const EmbedJob& job) {
  if (job.texts.cut == 0) return;
  fmt::print(stderr,
             "warning: {} of {} texts have more than {} tokens, with [CLS] and [SEP]; their ends are not read\n",
             job.texts.cut, job.texts.ids.size(), job.source.model.max_position_embeddings);
}

void report_vectors(const EmbedJob& job, double seconds, const std::vector<std::int64_t>& peaks) {
  const EmbedOptions& options = job.options;
  const std::size_t texts = job.texts.ids.size();
  const nlohmann::ordered_json json = {{"texts", texts},
                                       {"tokens", job.texts.tokens},
                                       {"cut_texts", job.texts.cut},
                                       {"hidden_size", job.source.model.hidden_size},
                                       {"pooling", options.vectors.pooling == Pooling::kMean ? "mean" : "cls"},
                                       {"normalized", options.vectors.normalize},
                                       {"out", options.out.string()},
                                       {"texts_per_second", static_cast<double>(texts) / seconds},
                                       {"tokens_per_second", static_cast<double>(job.texts.tokens) / seconds},
                                       {"peak_memory_bytes", peaks}};
  report_beside(options.out, options.json,
                fmt::format("{} vectors of {} values in {}: {}\n", readable_integer(static_cast<std::int64_t>(texts)),
                            job.source.model.hidden_size, readable_duration(seconds), options.out.string()),
                json.dump());
}

void run_rank(const EmbedJob& job, const Rank& rank) {
  const auto texts = static_cast<std::int64_t>(job.texts.ids.size()), hidden = job.source.model.hidden_size;
  const ExecutorOptions executor{.purpose = Purpose::kEvaluation,
                                 .batch = std::min(job.options.batch, texts),
                                 .tokens = job.texts.longest,
                                 .logits_chunk = 1};
  const LoadedEncoder encoder = load_encoder(job.source, executor, job.options.backend, rank);
  std::vector<float> vectors(rank.is_first() ? static_cast<std::size_t>(texts * hidden) : 0);
  std::atomic<double> share{0};
  std::optional<LongTask> told;
  if (rank.is_first()) told.emplace("embedding texts", [&share] { return share.load(); });
  const double start = monotonic_seconds();
  make_text_vectors(
      *encoder.model, job.texts, job.options.vectors,
      [&](std::size_t number, std::span<const float> vector) {
        if (!rank.is_first()) return;
        std::ranges::copy(vector, vectors.begin() + static_cast<std::ptrdiff_t>(number * vector.size()));
      },
      [&](std::size_t done) { share = static_cast<double>(done) / static_cast<double>(texts); });
  const double seconds = monotonic_seconds() - start;
  told.reset();
  const std::vector<std::int64_t> peaks = rank.peak_memory(*encoder.backend);
  if (!rank.is_first()) return;
  write_npy(job.options.out, hidden, vectors);
  report_vectors(job, seconds, peaks);
}

void run(const EmbedOptions& options) {
  const RankLauncher launcher(options.layout.threads, options.backend.backend);
  launcher.require_file("TEXT", options.text);
  WeightSource source = find_encoder(options.load, options.layout);
  TokenizedTexts texts = read_texts(options, source);
  const EmbedJob job{.options = options, .source = std::move(source), .texts = std::move(texts)};
  if (launcher.environment().process == 0) tell_of_cut_texts(job);
  EmbedOptions shown = options;
  launcher.run(options.layout.mesh(), to_toml(fields_of(shown)), [&](const Rank& rank) { run_rank(job, rank); });
}

}  // namespace

Command embed_command() { return make_command<EmbedOptions>("embed", "makes a vector of each text with a BERT", run); }

}  // namespace teratron
