// A tokenised corpus: one shard, or several that are read as one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/indexed/indexed_shard.h"

namespace teratron {

// The sequences, documents and tokens of the shards with consecutive numbers. Everything made of them (parts, shuffles,
// epochs) is what the concatenated files would give, bit for bit. Shards may store tokens in different types.
// Immutable; safe to read from many threads.
class IndexedDataset {
 public:
  // UserError: as IndexedShard::open.
  static IndexedDataset open(const std::filesystem::path& prefix);
  static IndexedDataset open(std::span<const std::filesystem::path> prefixes);  // at least one

  // The corpus, restricted to a vocabulary: read() refuses other ids.
  IndexedDataset with_vocabulary(std::int64_t vocab_size) const;

  std::span<const IndexedShard> shards() const { return *shards_; }
  std::string name() const;  // for people, in quotes: "'a'", "'a' and 2 more shards"
  std::int64_t tokens() const { return starts_.back().tokens; }
  std::int64_t sequences() const { return starts_.back().sequences; }
  std::int64_t documents() const { return starts_.back().documents; }

  TokenRange sequence(std::int64_t sequence) const;         // in [0, sequences())
  std::int64_t sequence_size(std::int64_t sequence) const;  // its tokens; costs less
  TokenRange document(std::int64_t document) const;         // in [0, documents()); may be empty
  // The first sequence of a document; documents() gives sequences(), the end of the last.
  std::int64_t first_sequence(std::int64_t document) const;

  // Reads out.size() tokens from `position` on. UserError: an id outside the vocabulary (of any: from 0 to 2^31 - 1).
  // EnvironmentError: a file cannot be read, or has changed since it was opened.
  void read(std::int64_t position, std::span<std::int32_t> out) const;

  // Reads the whole corpus (all threads). UserError: a token outside [0, vocab_size), with its file and position in it.
  void check_vocabulary(std::int64_t vocab_size) const;

 private:
  struct Start {
    std::int64_t tokens = 0, sequences = 0, documents = 0;  // in the shards before
  };
  explicit IndexedDataset(std::vector<IndexedShard> shards);
  std::size_t shard_of(std::int64_t Start::*what, std::int64_t number) const;

  std::shared_ptr<const std::vector<IndexedShard>> shards_;
  std::int64_t vocab_size_ = std::int64_t{1} << 31;
  std::vector<Start> starts_;  // of each shard, and the end of the last
};

}  // namespace teratron
