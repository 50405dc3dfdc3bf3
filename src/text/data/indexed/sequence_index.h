// The .idx of a shard (indexed_format.h) in memory: the tokens of each sequence and document. It is read once, so later
// changes of the file do not affect a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files/random_access_file.h"
#include "data/indexed/indexed_format.h"

namespace teratron {

// Positions [begin, end) in a shard or a corpus seen as one row of tokens.
struct TokenRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const TokenRange&) const = default;
};

std::string checksum_of(const RandomAccessFile& file);  // of all its bytes, as base/files/checksum.h

// Sequences are contiguous, as every writer of the format leaves them, so lengths suffice. Memory: 4.5 bytes a
// sequence, and 8 a document if documents may have several. Immutable; safe to read from many threads.
class SequenceIndex {
 public:
  // Reads the file to its end and checks every length, offset and document entry against the sizes of both files.
  // UserError: not this format, cut short, or entries that contradict each other (names the file and entry).
  SequenceIndex(const RandomAccessFile& index, const RandomAccessFile& tokens);

  TokenType token_type() const { return token_type_; }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t sequences() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t documents() const { return documents_; }
  const std::string& checksum() const { return checksum_; }              // of the file's bytes (base/files/checksum.h)
  const std::vector<std::int32_t>& lengths() const { return lengths_; }  // of each sequence

  TokenRange sequence(std::int64_t sequence) const;         // in [0, sequences())
  std::int64_t sequence_size(std::int64_t sequence) const;  // its tokens; costs less
  TokenRange document(std::int64_t document) const;         // in [0, documents()); may be empty
  // The first sequence of a document; documents() gives sequences(), the end of the last.
  std::int64_t first_sequence(std::int64_t document) const;
  std::int64_t document_at(std::int64_t position) const;  // of the token at this position

 private:
  class Reader;
  static constexpr std::int64_t kSequencesPerMark = 16;

  void check_offsets(Reader& reader, const RandomAccessFile& tokens);
  void read_documents(Reader& reader);
  std::int64_t begin_of(std::int64_t sequence) const;  // in tokens; sequences() gives tokens()

  TokenType token_type_ = TokenType::kU16;
  std::int64_t tokens_ = 0, documents_ = 0;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int64_t> marks_;            // the first token of every 16th sequence
  std::vector<std::int64_t> first_sequences_;  // of each document, and the end; empty: a document is a sequence
  std::string checksum_;
};

}  // namespace teratron
