// Reads one pair of files in Megatron-LM's indexed format (indexed_format.h) through memory maps: nothing is loaded
// until it is read, and processes on one machine share the pages. A corpus is one shard or several (indexed_dataset.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "base/files/file.h"
#include "data/indexed/indexed_format.h"

namespace teratron {

// Positions [begin, end) in a shard or a corpus seen as one row of tokens.
struct TokenRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const TokenRange&) const = default;
};

// Every sequence lies right behind the one before it (as every writer of the format leaves them), so the shard is one
// row of tokens and sequences and documents are ranges of it. Immutable; safe to read from many threads.
class IndexedShard {
 public:
  // Opens PREFIX.bin and PREFIX.idx and checks every length, offset and document entry against both files' sizes.
  // UserError: missing, not this format, cut short, or entries that contradict each other (names the file and entry).
  static IndexedShard open(const std::filesystem::path& prefix);

  const std::filesystem::path& prefix() const { return prefix_; }
  TokenType token_type() const { return token_type_; }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t sequences() const { return sequences_; }
  std::int64_t documents() const { return documents_; }

  TokenRange sequence(std::int64_t sequence) const;         // in [0, sequences())
  std::int64_t sequence_size(std::int64_t sequence) const;  // its tokens; costs less
  TokenRange document(std::int64_t document) const;         // in [0, documents()); may be empty
  // The first sequence of a document; documents() gives sequences(), the end of the last.
  std::int64_t first_sequence(std::int64_t document) const;

  // Reads out.size() tokens from `position` on. UserError: a stored value that is negative or above 2^31 - 1.
  void read(std::int64_t position, std::span<std::int32_t> out) const;

  // The tokens of a range as the file holds them, size_of(token_type()) bytes each.
  std::span<const std::byte> stored(TokenRange range) const;
  // They need not stay in this process' memory (MappedFile::release).
  void release(TokenRange range) const;

  // Reads the whole shard (all threads). UserError: a token outside [0, vocab_size), with its position and document.
  void check_vocabulary(std::int64_t vocab_size) const;

 private:
  IndexedShard(std::filesystem::path prefix, MappedFile index, MappedFile tokens);
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
