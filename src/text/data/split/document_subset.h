// Some documents of a corpus, in the order of the file.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/indexed/indexed_dataset.h"

namespace teratron {

// A bitmap of the corpus' documents with running totals every 512 of them. Memory: 1.25 bits a document of the corpus.
// A document is found by its index in the subset, or by a token's, in O(log documents). Immutable; safe to read from
// many threads.
class DocumentSubset {
 public:
  // The documents d for which parts[d] == part. parts.size() is the number of documents of `dataset`.
  DocumentSubset(const IndexedDataset& dataset, std::span<const std::uint8_t> parts, std::uint8_t part);

  std::int64_t documents() const { return marks_.back().documents; }
  std::int64_t tokens() const { return marks_.back().tokens; }

  // The corpus' number of document `i` of the subset, i in [0, documents()).
  std::int64_t document(std::int64_t i) const;

  // Reads out.size() tokens from `position` on of the subset's documents, joined to one stream of tokens() tokens.
  // `dataset` is the one the subset was made of. UserError as IndexedDataset::read.
  void read(const IndexedDataset& dataset, std::int64_t position, std::span<std::int32_t> out) const;

 private:
  static constexpr std::int64_t kDocumentsPerWord = 64, kWordsPerMark = 8;
  struct Mark {
    std::int64_t documents = 0, tokens = 0;  // of the subset before word 0, 8, 16, ...
  };

  std::vector<std::uint64_t> words_;  // document d: bit d % 64 of word d / 64
  std::vector<Mark> marks_;           // the last one: after all words
};

}  // namespace teratron
