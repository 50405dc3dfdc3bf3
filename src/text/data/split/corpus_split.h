// Training, validation and test parts of a corpus.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/indexed/indexed_dataset.h"

namespace teratron {

// How documents are assigned to the parts of a corpus.
struct SplitRule {
  std::optional<std::uint64_t> seed;  // of the random draw (document_choice.h); empty: in file order
  bool operator==(const SplitRule&) const = default;
};
constexpr SplitRule kFileOrder;

// Some documents of a corpus, in the order of the file: a bitmap of the corpus' documents with running totals every 512
// of them. Memory: 1.25 bits a document of the corpus. A document is found by its index in the subset, or by a token's,
// in O(log documents). Immutable; safe to read from many threads.
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

// A part of a corpus: documents in file order, either a run of them or those that were drawn. Copies share memory.
struct CorpusPart {
  std::string name;  // "training", "validation" or "test"
  // A run: its documents are those with tokens in it; the outer ones are cut at the ends of the run.
  TokenRange run;
  std::int64_t first_document = 0, end_document = 0;  // end: one past the last
  std::shared_ptr<const DocumentSubset> drawn;        // whole documents; nullptr: the part is a run

  std::int64_t documents() const { return drawn ? drawn->documents() : end_document - first_document; }
  std::int64_t tokens() const { return drawn ? drawn->tokens() : run.size(); }
  // The corpus' number of the part's document i in [0, documents()).
  std::int64_t number(std::int64_t i) const;
  // The tokens of that document that are in the part.
  TokenRange document(const IndexedDataset& dataset, std::int64_t i) const;
  // Reads out.size() tokens from `position` on of the part's documents, joined to one stream of tokens() tokens.
  void read(const IndexedDataset& dataset, std::int64_t position, std::span<std::int32_t> out) const;
};

// Parses weights such as "29,1" or "969,30,1": one to three, at least one above zero. Empty if it is no such list.
std::vector<double> parse_split(std::string_view text);

// Cuts a corpus into a part for each weight: training, validation, test. Documents stay whole, shares count documents,
// and each weight above zero gets at least one. The parts do not depend on the training seed, so no run trains on what
// another run with the same rule validates on.
//   Random, as in the Megatron-LM paper: each document is drawn separately, so it keeps its part when the corpus grows
//   at its end (document_choice.h has the one exception). Memory: 1.25 bits a document and part, and a byte a document
//   meanwhile.
//   File order, as in Megatron-LM's code: each part is a run of documents.
// A corpus with fewer documents than weights above zero is cut by token position, whatever the rule.
std::vector<CorpusPart> split_corpus(const IndexedDataset& dataset, std::span<const double> weights,
                                     const SplitRule& rule);

}  // namespace teratron
