// Reads a tokenised corpus in Megatron-LM's indexed format (indexed_format.h) through memory maps: nothing is loaded
// until it is read, and processes on one machine share the pages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "base/file.h"
#include "data/indexed_format.h"

namespace teratron {

// Positions [begin, end) in a corpus seen as one row of tokens.
struct TokenRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const TokenRange&) const = default;
};

// Every sequence lies right behind the one before it (as every writer of the format leaves them), so the corpus is one
// row of tokens and sequences and documents are ranges of it. Immutable; safe to read from many threads.
class IndexedDataset {
 public:
  // Opens PREFIX.bin and PREFIX.idx and checks every length, offset and document entry against both files' sizes.
  // UserError: missing, not this format, cut short, or entries that contradict each other (names the file and entry).
  static IndexedDataset open(const std::filesystem::path& prefix);

  const std::filesystem::path& prefix() const { return prefix_; }
  TokenType token_type() const { return token_type_; }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t sequences() const { return sequences_; }
  std::int64_t documents() const { return documents_; }

  TokenRange sequence(std::int64_t sequence) const;  // in [0, sequences())
  TokenRange document(std::int64_t document) const;  // in [0, documents()); may be empty
  // The first sequence of a document; documents() gives sequences(), the end of the last.
  std::int64_t first_sequence(std::int64_t document) const;

  // Reads out.size() tokens from `position` on. UserError: a stored value that is negative or above 2^31 - 1.
  void read(std::int64_t position, std::span<std::int32_t> out) const;

  // Reads the whole corpus (all threads). UserError: a token outside [0, vocab_size), with its position and document.
  void check_vocabulary(std::int64_t vocab_size) const;

 private:
  IndexedDataset(std::filesystem::path prefix, MappedFile index, MappedFile tokens);
  void parse_header();
  void check_sequences() const;
  void check_documents() const;
  template <class T>
  T load(std::size_t offset) const;
  std::int64_t length_of(std::int64_t sequence) const;
  std::int64_t begin_of(std::int64_t sequence) const;  // in tokens; sequences() gives tokens()
  std::int64_t document_at(std::int64_t position) const;

  std::filesystem::path prefix_;
  MappedFile index_file_, token_file_;
  TokenType token_type_ = TokenType::kU16;
  std::int64_t tokens_ = 0, sequences_ = 0, documents_ = 0;
  std::size_t lengths_at_ = 0, offsets_at_ = 0, documents_at_ = 0;  // where the index's arrays begin, in bytes
};

}  // namespace teratron
