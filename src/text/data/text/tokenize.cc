#include "data/text/tokenize.h"

#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/host/threads.h"
#include "data/indexed/indexed_dataset_writer.h"
#include "data/text/document_text.h"
#include "data/text/sentence_splitter.h"

namespace teratron {
namespace {

// Documents of this length are tokenised by all threads together.
constexpr std::size_t kLongDocument = std::size_t{1} << 20;

struct TokenizedDocument {
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> sentence_ends;  // in `tokens`, if it is split
  std::int64_t bytes = 0;
  std::string error;  // kept, so that of several bad lines the first one is reported
};

class BatchTokenizer {
 public:
  BatchTokenizer(const Tokenizer& tokenizer, const TokenizeOptions& options)
      : tokenizer_(tokenizer), key_(options.json_key), split_(options.split) {
    if (!options.append_end_of_text || split_ != SentenceSplit::kNone) return;
    end_of_text_ = tokenizer.end_of_text();
    if (!end_of_text_) {
      throw_user_error(
          "the tokenizer has no \"<|endoftext|>\" token to end documents with; use one that has, name its own "
          "as eos_token in tokenizer_config.json, or give --no-append-eod");
    }
  }

  std::vector<TokenizedDocument> run(const DocumentBatch& batch) const {
    const auto count = static_cast<std::int64_t>(batch.documents.size());
    std::vector<TokenizedDocument> results(batch.documents.size());
    constexpr std::int64_t kDocumentsPerTask = 8;
    parallel_for(count, kDocumentsPerTask, [&](std::int64_t begin, std::int64_t end) {
      DocumentText text(key_);
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        if (!is_long(batch.documents[i])) tokenize(batch.documents[i], text, results[i]);
      }
    });
    DocumentText text(key_);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (is_long(batch.documents[i])) tokenize(batch.documents[i], text, results[i]);
    }
    return results;
  }

 private:
  static bool is_long(const RawDocument& document) { return document.bytes.size() >= kLongDocument; }

  void tokenize(const RawDocument& document, DocumentText& text_of, TokenizedDocument& result) const {
    std::string_view text;
    try {
      text = text_of.of(document);
    } catch (const UserError& error) {
      result.error = error.what();
      return;
    }
    result.bytes = static_cast<std::int64_t>(text.size());
    if (text.empty()) return;
    if (split_ != SentenceSplit::kNone) return tokenize_sentences(text, result);
    if (is_long(document)) {
      result.tokens = tokenizer_.encode_parallel(text);
    } else {
      tokenizer_.encode_to(text, result.tokens);
    }
    if (end_of_text_) result.tokens.push_back(*end_of_text_);
  }

  void tokenize_sentences(std::string_view text, TokenizedDocument& result) const {
    constexpr std::int64_t kSentencesPerTask = 512;
    const std::vector<std::string_view> sentences =
        split_ == SentenceSplit::kLines ? split_lines(text) : split_sentences(text);
    std::vector<TokenizedDocument> parts((sentences.size() + kSentencesPerTask - 1) / kSentencesPerTask);
    parallel_for(std::ssize(sentences), kSentencesPerTask, [&](std::int64_t begin, std::int64_t end) {
      TokenizedDocument& part = parts[static_cast<std::size_t>(begin / kSentencesPerTask)];
      for (; begin < end; ++begin) {
        const std::size_t before = part.tokens.size();
        tokenizer_.encode_to(sentences[static_cast<std::size_t>(begin)], part.tokens);
        if (part.tokens.size() > before) part.sentence_ends.push_back(std::ssize(part.tokens));
      }
    });
    for (const TokenizedDocument& part : parts) {
      for (const std::int64_t end : part.sentence_ends) result.sentence_ends.push_back(std::ssize(result.tokens) + end);
      result.tokens.insert(result.tokens.end(), part.tokens.begin(), part.tokens.end());
    }
  }

  const Tokenizer& tokenizer_;
  const std::string& key_;
  SentenceSplit split_;
  std::optional<std::int32_t> end_of_text_;
};

void add_document(const TokenizedDocument& document, IndexedDatasetWriter& writer) {
  const std::span tokens(document.tokens);
  std::size_t begin = 0;
  for (const std::int64_t sentence_end : document.sentence_ends) {
    const auto end = static_cast<std::size_t>(sentence_end);
    writer.add_sequence(tokens.subspan(begin, end - begin));
    begin = end;
  }
  if (begin < tokens.size()) writer.add_sequence(tokens.subspan(begin));
  writer.end_document();
}

}  // namespace

TokenizeCounts tokenize_files(const Tokenizer& tokenizer, std::span<const std::filesystem::path> files,
                              const std::filesystem::path& prefix, const TokenizeOptions& options) {
  check(options.batch_bytes > 0, "tokenize_files: batch_bytes");
  const BatchTokenizer batch_tokenizer(tokenizer, options);
  DocumentReader reader(files, options.batch_bytes, options.format);
  reader.take_columns({options.json_key});
  if (prefix.has_parent_path()) make_folders(prefix.parent_path());
  IndexedDatasetWriter writer(prefix, tokenizer.vocab_size());
  TokenizeProgress progress{.counts = {}, .bytes_total = reader.total_bytes()};
  TokenizeCounts& counts = progress.counts;
  for (DocumentBatch batch; reader.next(batch);) {
    for (const TokenizedDocument& document : batch_tokenizer.run(batch)) {
      if (!document.error.empty()) throw UserError(document.error);
      if (document.tokens.empty()) {
        ++counts.empty_documents;
        continue;
      }
      add_document(document, writer);
      counts.bytes += document.bytes;
      counts.sentences += std::ssize(document.sentence_ends);
      counts.single_sentences += document.sentence_ends.size() == 1 ? 1 : 0;
    }
    counts.documents = writer.documents();
    counts.tokens = writer.tokens();
    progress.bytes_read += batch.bytes_read;
    if (options.progress) options.progress(progress);
  }
  if (counts.documents == 0) {
    throw_user_error("there is no text in {}{}; nothing was written", name_of_input(files[0]),
                     files.size() > 1 ? fmt::format(" and {} more files", files.size() - 1) : "");
  }
  writer.commit(identity_of(tokenizer, options.tokenizer_name),
                options.split == SentenceSplit::kNone    ? SequenceUnit::kDocument
                : options.split == SentenceSplit::kLines ? SequenceUnit::kLine
                                                         : SequenceUnit::kSentence);
  return counts;
}

}  // namespace teratron
