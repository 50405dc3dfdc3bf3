// The order in which an epoch of GPT training reads its part of the corpus, as in the paper (arXiv 1909.08053): the
// part is cut in five shards, read one after the other in random order; the documents of a shard are shuffled and
// joined to one stream; the stream is cut into chunks of seq_length + 1 tokens; the chunks of a shard are shuffled.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/permutation.h"
#include "data/indexed/indexed_dataset.h"
#include "data/split/corpus_split.h"

namespace teratron {

// A pure function of (part, seq_length, seed, epoch); each epoch is shuffled again.
//
// Chunks overlap by one token: the last target of one is the first input of the next. The stream continues from shard
// to shard (a chunk belongs to the shard in which it begins), so a part of T tokens always gives (T - 1) / seq_length
// chunks. The remainder of fewer than seq_length tokens is skipped, some at the stream's start and the rest at its end.
// The split is drawn for each epoch, so no token is skipped forever, even in a single document.
//
// Memory: half a byte a document. Built in one pass over the index by all threads; a chunk is found in O(log
// documents). Safe to use from many threads. Refers to `dataset`, which must outlive it.
class EpochOrder {
 public:
  EpochOrder(const IndexedDataset& dataset, CorpusPart part, std::int64_t seq_length, std::uint64_t seed,
             std::int64_t epoch);

  static std::int64_t chunks(const CorpusPart& part, std::int64_t seq_length) {
    return part.tokens() > 0 ? (part.tokens() - 1) / seq_length : 0;
  }

  // Writes chunk `index` of the epoch, seq_length + 1 tokens.
  void read(std::int64_t index, std::span<std::int32_t> tokens) const;
  // Places of those tokens in the corpus, document by document.
  std::vector<TokenRange> ranges(std::int64_t index) const;

 private:
  static constexpr std::size_t kShards = 5;
  static constexpr std::int64_t kDocumentsPerMark = 16;

  struct Shard {
    std::int64_t first_document = 0;  // in the part, unshuffled
    std::int64_t first_rank = 0;      // index of its first document in the epoch
    std::int64_t first_chunk = 0;     // index of its first chunk in the epoch
    RandomPermutation documents, chunks;
  };
  void place_documents(std::uint64_t seed, std::uint32_t epoch);
  void mark_stream();
  void place_chunks(std::uint64_t seed, std::uint32_t epoch);
  std::int64_t stream_begin(std::int64_t rank) const;
  TokenRange document_at(std::int64_t rank) const;
  std::int64_t position_of_chunk(std::int64_t index) const;  // in the stream

  const IndexedDataset* dataset_;
  CorpusPart part_;
  std::int64_t seq_length_;
  std::int64_t skipped_ = 0;           // tokens at the start of the stream that are in no chunk of this epoch
  std::array<Shard, kShards> shards_;  // in the order of this epoch
  std::vector<std::int64_t> marks_;    // offsets in the stream of the documents of rank 0, 16, 32, ...
};

}  // namespace teratron
