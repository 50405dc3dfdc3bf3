// Writes a tokenised corpus in Megatron-LM's indexed format (indexed_format.h), byte for byte as its own writer does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/files/checksum.h"
#include "base/files/file.h"
#include "base/files/output_lock.h"
#include "data/indexed/corpus_sidecar.h"
#include "data/indexed/indexed_format.h"

namespace teratron {

// A file that is written whole or not at all, with a checksum.
class ChecksummedFile {
 public:
  explicit ChecksummedFile(std::filesystem::path path) : file_(std::move(path)) {}

  template <class T>
  void write_values(std::span<const T> values) {
    file_.write_values(values);
    checksum_.update(std::as_bytes(values));
  }
  void sync() { file_.sync(); }
  void commit() { file_.commit(); }
  CorpusFile written() const {
    return {.bytes = static_cast<std::int64_t>(file_.bytes_written()), .checksum = checksum_.digest()};
  }

 private:
  AtomicFile file_;
  Checksum checksum_;
};

// Tokens go to the disk at once; 4 bytes a sequence and 8 bytes a document stay in memory until commit(). No reader
// sees half a dataset: all files are written aside, and .idx, without which a .bin is no dataset, gets its name last.
// Without commit() nothing stays and an older dataset of that name is kept. Every failure to write is an
// EnvironmentError that names the file. Only one process writes a dataset at a time: UserError if another one does, or
// if the prefix is a device or a pipe.
class IndexedDatasetWriter {
 public:
  // Ids are below vocab_size, which decides the token type.
  IndexedDatasetWriter(std::filesystem::path prefix, std::int64_t vocab_size);
  // For sequences of another corpus, stored as this type.
  IndexedDatasetWriter(std::filesystem::path prefix, TokenType token_type);

  void add_sequence(std::span<const std::int32_t> tokens);  // UserError: more than 2^31 - 1 tokens
  // Adds sequences of these lengths; their bytes, as stored in a file of this token type (IndexedShard::read_bytes),
  // follow in pieces and are not checked.
  void add_stored_sequences(std::span<const std::int32_t> lengths);
  void add_stored_bytes(std::span<const std::byte> tokens) { write_tokens(tokens); }
  void end_document() { first_sequences_.push_back(static_cast<std::int64_t>(lengths_.size())); }
  void add_document(std::span<const std::int32_t> tokens) {
    add_sequence(tokens);
    end_document();
  }

  std::int64_t tokens() const { return tokens_; }
  std::int64_t sequences() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t documents() const { return static_cast<std::int64_t>(first_sequences_.size()) - 1; }
  // Sequences added since the last end_document() belong to no document: a bug of the caller. A corpus of a known
  // tokenizer gets a sidecar (corpus_sidecar.h); one of an unknown tokenizer loses an older sidecar.
  void commit(const std::optional<TokenizerIdentity>& tokenizer = std::nullopt,
              SequenceUnit sequences = SequenceUnit::kDocument) {
    finish(tokenizer, sequences);
    publish();
  }
  // The two halves of commit(), for writers of several corpora: all are on the disk before the first gets its name.
  void finish(const std::optional<TokenizerIdentity>& tokenizer, SequenceUnit unit);
  void publish();

 private:
  template <class T>
  void write_tokens(std::span<const T> tokens) {
    token_file_.write_values(tokens);
    token_blocks_.update(std::as_bytes(tokens));
  }
  void write_index(ChecksummedFile& file) const;

  std::filesystem::path prefix_;
  OutputLock lock_;
  std::int64_t vocab_size_ = 0;  // 0: sequences are copied as stored
  TokenType token_type_;
  ChecksummedFile token_file_;
  BlockChecksums token_blocks_{kChecksumBlockBytes};
  std::optional<ChecksummedFile> index_file_;  // from finish() on, as the sidecar
  std::optional<AtomicFile> sidecar_;
  std::int64_t tokens_ = 0;
  std::vector<std::int32_t> lengths_;             // of each sequence
  std::vector<std::int64_t> first_sequences_{0};  // of each document, and the end of the last
  std::vector<std::uint16_t> narrow_;             // scratch of add_sequence
};

}  // namespace teratron
