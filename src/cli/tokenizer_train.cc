// teratron tokenizer train: learns a byte-level BPE vocabulary from text files.
#include <fmt/format.h>

#include <atomic>
#include <deque>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/decompression.h"
#include "base/error.h"
#include "base/file.h"
#include "base/monotonic_clock.h"
#include "base/threads.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "data/input_files.h"
#include "telemetry/peak_memory.h"
#include "tokenizer/bpe_trainer.h"
#include "tokenizer/tokenizer.h"

namespace teratron {
namespace {

struct TokenizerTrainOptions {
  std::vector<std::filesystem::path> files;
  std::filesystem::path out, json;
  std::int64_t vocab_size = 0, minimum_count = BpeTrainingOptions{}.minimum_count, threads = 0;
};

FieldList fields_of(TokenizerTrainOptions& o) {
  FieldList list;
  list.add_positional(
      &o.files, "FILE",
      "text to learn from, plain or compressed (gzip, zstd); a folder: all .txt files below; -: standard input");
  list.add("vocab-size", &o.vocab_size, "N", "tokens, with the 256 bytes and <|endoftext|>").required = true;
  list.add("out", &o.out, "DIR", "where vocab.json, merges.txt and tokenizer.json go").required = true;
  list.add("minimum-count", &o.minimum_count, "N", "a pair seen more rarely gets no token").between(1);
  list.add("threads", &o.threads, "N", "0: one a core").between(0);
  add_json_field(list, o.json);
  return list;
}

// What to learn from: files are mapped, what is compressed or comes through a pipe is read.
class LearningTexts {
 public:
  explicit LearningTexts(const std::vector<std::filesystem::path>& named) {
    for (const std::filesystem::path& file : find_input_files(named)) {
      if (is_named_json_lines(file)) {
        throw_user_error(
            "'{}' is JSON lines, and a vocabulary is learned from plain text; write the text of its documents to a "
            "file of its own",
            file.string());
      }
      texts_.push_back(is_mappable(file) ? mapped_.emplace_back(file).text()
                                         : std::string_view(read_.emplace_back(read_decompressed(file))));
      require_text(texts_.back(), 0, file);
      bytes_ += texts_.back().size();
    }
  }
  const std::vector<std::string_view>& texts() const { return texts_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  static bool is_mappable(const std::filesystem::path& file) {
    return std::filesystem::is_regular_file(file) && !DecompressingReader(file).is_compressed();
  }

  std::deque<MappedFile> mapped_;
  std::deque<std::string> read_;
  std::vector<std::string_view> texts_;
  std::uint64_t bytes_ = 0;
};

BpeModel train(const TokenizerTrainOptions& options, std::span<const std::string_view> texts) {
  std::atomic<double> share{0};
  LongTask task("counting words", [&] { return share.load(); });
  bool joins = false;
  const auto tell = [&](const BpeTrainingProgress& progress) {
    const auto ratio = [](auto part, auto whole) { return static_cast<double>(part) / static_cast<double>(whole); };
    share = progress.tokens == 0 ? ratio(progress.bytes_counted, progress.bytes)
                                 : ratio(progress.tokens, progress.vocab_size);
    if (progress.tokens > 0 && !std::exchange(joins, true)) {
      task.next("joining pairs", [&] { return share.load(); });
    }
  };
  return train_bpe(texts, {.vocab_size = options.vocab_size, .minimum_count = options.minimum_count, .progress = tell});
}

void run(const TokenizerTrainOptions& options) {
  if (options.threads > 0) set_thread_count(static_cast<int>(options.threads));
  const LearningTexts learning(options.files);
  const std::uint64_t bytes = learning.bytes();
  const double start = monotonic_seconds();
  const Tokenizer tokenizer(train(options, learning.texts()));
  const double seconds = monotonic_seconds() - start;
  tokenizer.save(options.out);

  std::string text = fmt::format("{} tokens learned from {} in {}: {}\n", tokenizer.vocab_size(), readable_bytes(bytes),
                                 readable_duration(seconds), options.out.string());
  if (tokenizer.vocab_size() < options.vocab_size) {
    text += fmt::format("fewer than --vocab-size {}: no pair is left that occurs {} times\n", options.vocab_size,
                        options.minimum_count);
  }
  const nlohmann::ordered_json json = {{"vocab_size", tokenizer.vocab_size()},
                                       {"merges", tokenizer.model().merges.size()},
                                       {"bytes", bytes},
                                       {"seconds", seconds},
                                       {"peak_memory_bytes", peak_memory_bytes()}};
  report(options.json, text, json.dump());
}

}  // namespace

Command tokenizer_train_command() {
  return make_command<TokenizerTrainOptions>("tokenizer train", "learns a byte-level BPE vocabulary from text files",
                                             run);
}

}  // namespace teratron
