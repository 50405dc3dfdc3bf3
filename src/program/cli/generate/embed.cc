// teratron embed: a vector for each line of a text, by a BERT.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files/free_place.h"
#include "base/files/output_lock.h"
#include "base/host/monotonic_clock.h"
#include "base/host/standard_streams.h"
#include "cli/commands.h"
#include "cli/generate/embed_options.h"
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

// What all ranks of a process read.
struct EmbedJob {
  EmbedOptions options;  // with what the folder says where they say nothing
  WeightSource source;
  TokenizedTexts texts;
};

TokenizedTexts read_texts(const EmbedOptions& options, const WeightSource& source,
                          const std::optional<SentenceTransformer>& folder) {
  const Tokenizer tokenizer = load_tokenizer_for(source, options.tokenizer);
  if (folder && folder->lower_case && tokenizer.kind() == TokenizerKind::kWordPiece &&
      !tokenizer.word_piece().lower_case) {
    throw_user_error(
        "'{}' is a sentence-transformer of texts in lower case (do_lower_case), and its tokenizer is cased; "
        "give an uncased one by --tokenizer DIR",
        options.load.string());
  }
  const std::vector<std::string> texts =
      read_text_list(options.text, options.format, {.names = {options.json_key}}, BlankLines::kKeep);
  return tokenize_texts(tokenizer, std::vector<std::string_view>(texts.begin(), texts.end()),
                        most_tokens(options, source), folder ? folder->prompt : "");
}

void tell_of_cut_texts(const EmbedJob& job) {
  if (job.texts.cut == 0) return;
  report_to_user(
      fmt::format("warning: {} of {} texts have more than {} tokens, with [CLS] and [SEP]; their ends are not read",
                  job.texts.cut, job.texts.ids.size(), most_tokens(job.options, job.source)));
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
  report_beside(options.out, options.json,
                fmt::format("{} vectors of {} values in {}: {}\n", readable_integer(static_cast<std::int64_t>(texts)),
                            job.source.model.hidden_size, readable_duration(seconds), options.out.string()),
                json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
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
  const RankLauncher launcher(options.layout.threads, options.backend.kind, options.layout.bind);
  launcher.require_file("TEXT", options.text);
  require_free(std::array{options.out}, options.overwrite);
  EmbedOptions filled = options;
  const std::optional<SentenceTransformer> folder = read_sentence_transformer(options.load);
  const std::string told = folder ? take_from(*folder, filled) : "";
  WeightSource source = find_encoder(folder ? folder->encoder : options.load, options.layout, WeightUse::kEmbed);
  require_positions(options, source);
  TokenizedTexts texts = read_texts(filled, source, folder);
  const EmbedJob job{.options = std::move(filled), .source = std::move(source), .texts = std::move(texts)};
  std::optional<OutputLock> lock;
  if (launcher.environment().process == 0) {
    lock.emplace(options.out);
    if (folder) report_to_user(told);
    tell_of_cut_texts(job);
  }
  EmbedOptions shown = options;
  launcher.run(options.layout.mesh(), to_toml(fields_of(shown)), [&](const Rank& rank) { run_rank(job, rank); });
}

}  // namespace

Command embed_command() { return make_command<EmbedOptions>("embed", "makes a vector of each text with a BERT", run); }

}  // namespace teratron
