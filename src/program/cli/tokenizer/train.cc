// teratron tokenizer train: learns a byte-level BPE vocabulary from text files.
#include <fmt/format.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/files/free_place.h"
#include "base/files/output_lock.h"
#include "base/host/monotonic_clock.h"
#include "base/host/resources.h"
#include "checkpoint/tokenizer_files.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/text_format.h"
#include "cli/threads_field.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "data/text/tokenize.h"
#include "data/text/whole_texts.h"
#include "tokenizer/bpe/bpe_trainer.h"
#include "tokenizer/tokenizer.h"

namespace teratron {
namespace {

struct TokenizerTrainOptions {
  std::vector<std::filesystem::path> files;
  std::filesystem::path out, json;
  std::string json_key = TokenizeOptions{}.json_key;
  TextFormat format = TextFormat::kAuto;
  bool overwrite = false;
  std::int64_t vocab_size = 0, minimum_count = BpeTrainingOptions{}.minimum_count, threads = 0;

  Faults faults() const {
    Faults faults;
    add_name_fault(faults, "--out", out);
    return faults;
  }
};

FieldList fields_of(TokenizerTrainOptions& o) {
  FieldList list;
  list.add_positional(
      &o.files, "FILE",
      "text to learn from, as data tokenize takes it: plain, .jsonl or .parquet, also compressed (gzip, "
      "zstd). A folder: all .jsonl, .parquet and .txt files below. -: standard input");
  list.add("vocab-size", &o.vocab_size, "N", "tokens, with the 256 bytes and <|endoftext|>").required = true;
  list.add("out", &o.out, "DIR", "folder for vocab.json, merges.txt, tokenizer.json and tokenizer_config.json")
      .writes(FileContent::kOwn, {"/vocab.json", "/merges.txt", "/tokenizer.json", "/tokenizer_config.json"})
      .required = true;
  add_overwrite_field(list, o.overwrite);
  add_text_format_fields(list, o.format, o.json_key);
  list.add("minimum-count", &o.minimum_count, "N", "a pair seen more rarely gets no token").between(1);
  add_threads_field(list, o.threads);
  add_json_field(list, o.json);
  return list;
}

// Files of a tokenizer in `folder`, of any kind.
std::vector<std::filesystem::path> tokenizer_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& [name, _] : find_tokenizer_files(folder)) files.push_back(folder / name);
  return files;
}

BpeModel train(const TokenizerTrainOptions& options, std::span<const std::string_view> texts) {
  std::atomic<double> share{0};
  LongTask task("counting words", [&] { return share.load(); });
  bool joins = false;
  const auto report = [&](const BpeTrainingProgress& progress) {
    const auto ratio = [](auto part, auto whole) { return static_cast<double>(part) / static_cast<double>(whole); };
    share = progress.tokens == 0 ? ratio(progress.bytes_counted, progress.bytes)
                                 : ratio(progress.tokens, progress.vocab_size);
    if (progress.tokens > 0 && !std::exchange(joins, true)) {
      task.next("joining pairs", [&] { return share.load(); });
    }
  };
  return train_bpe(texts,
                   {.vocab_size = options.vocab_size, .minimum_count = options.minimum_count, .progress = report});
}

void run(const TokenizerTrainOptions& options) {
  use_threads(options.threads);
  require_free(tokenizer_in(options.out), options.overwrite);
  const OutputLock lock(options.out);
  std::optional<LongTask> progress(std::in_place, "reading text");
  const WholeTexts learning(options.files, options.format, options.json_key);
  progress.reset();
  const double start = monotonic_seconds();
  const Tokenizer tokenizer(train(options, learning.texts()));
  const double seconds = monotonic_seconds() - start;
  tokenizer.save(options.out);

  std::string text = fmt::format("{} tokens learned from {} in {}: {}\n", tokenizer.vocab_size(),
                                 readable_bytes(learning.bytes()), readable_duration(seconds), options.out.string());
  if (tokenizer.vocab_size() < options.vocab_size) {
    text += fmt::format("fewer than --vocab-size {}: no pair is left that occurs {} times\n", options.vocab_size,
                        options.minimum_count);
  }
  const nlohmann::ordered_json json = {{"vocab_size", tokenizer.vocab_size()},
                                       {"merges", tokenizer.model().merges.size()},
                                       {"bytes", learning.bytes()},
                                       {"seconds", seconds},
                                       {"peak_memory_bytes", peak_memory_bytes()}};
  report(options.json, text, json);
}

}  // namespace

Command tokenizer_train_command() {
  return make_command<TokenizerTrainOptions>("tokenizer train", "learns a byte-level BPE vocabulary from text files",
                                             run);
}

}  // namespace teratron
