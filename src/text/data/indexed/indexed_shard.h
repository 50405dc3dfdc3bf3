// Reads one pair of files in Megatron-LM's indexed format (indexed_format.h). The index is held in memory; tokens are
// read from the file on demand. A corpus is one shard or several (indexed_dataset.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/files/random_access_file.h"
#include "data/indexed/sequence_index.h"

namespace teratron {

// Samples the file when it is opened, to notice later changes: all of a small one, blocks spread over a larger one.
class TokenContent {
 public:
  explicit TokenContent(const RandomAccessFile& file) : sample_(sample_of(file)) {}

  // Compares the file with the sample, and with the checksums in the sidecar of the corpus at `prefix` if that
  // describes this file: the prefix still names it, and `index_checksum` is that of its .idx. Compares all of it, or
  // blocks spread over it if it is larger than kMostCompared. Empty: no difference. Notifies the user of a comparison
  // that may take long. EnvironmentError: the file cannot be read.
  std::string fault(const RandomAccessFile& file, const std::filesystem::path& prefix,
                    const std::string& index_checksum) const;

  static constexpr std::uint64_t kMostCompared = std::uint64_t{4} << 30;

 private:
  static std::string sample_of(const RandomAccessFile& file);

  std::string sample_;  // its checksum
};

// A shard is one row of tokens; sequences and documents are ranges of it. Immutable; safe to read from many threads.
class IndexedShard {
 public:
  // Opens PREFIX.bin and PREFIX.idx. UserError: one is missing; as SequenceIndex.
  static IndexedShard open(const std::filesystem::path& prefix);

  const std::filesystem::path& prefix() const { return prefix_; }
  const SequenceIndex& index() const { return index_; }
  TokenType token_type() const { return index_.token_type(); }
  std::int64_t tokens() const { return index_.tokens(); }
  std::int64_t sequences() const { return index_.sequences(); }
  std::int64_t documents() const { return index_.documents(); }
  std::uint64_t bin_bytes() const { return token_file_.size(); }

  TokenRange sequence(std::int64_t sequence) const { return index_.sequence(sequence); }
  std::int64_t sequence_size(std::int64_t sequence) const { return index_.sequence_size(sequence); }
  TokenRange document(std::int64_t document) const { return index_.document(document); }
  std::int64_t first_sequence(std::int64_t document) const { return index_.first_sequence(document); }

  // Reads out.size() tokens from `position` on. UserError: an id outside [0, vocab_size), with its position and
  // document; the output is then invalid. EnvironmentError: the .bin cannot be read, or has changed since it was opened
  // (TokenContent; a new time alone is no change).
  void read(std::int64_t position, std::span<std::int32_t> out, std::int64_t vocab_size) const;

  // The bytes of the .bin from `offset` on. EnvironmentError: as read.
  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const;
  std::string bin_checksum() const;  // of all its bytes (checksum_of)

  // Reads the whole shard (all threads). UserError: as read.
  void check_vocabulary(std::int64_t vocab_size) const;

 private:
  IndexedShard(std::filesystem::path prefix, SequenceIndex index, RandomAccessFile token_file);
  template <class T>
  void read_as(std::int64_t position, std::span<std::int32_t> out, std::int64_t vocab_size) const;
  void require_unchanged() const;
  [[noreturn]] void throw_outside(std::int64_t id, std::int64_t position, std::int64_t vocab_size) const;

  std::filesystem::path prefix_;
  SequenceIndex index_;
  RandomAccessFile token_file_;
  TokenContent content_;
};

}  // namespace teratron
