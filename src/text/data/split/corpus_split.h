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
#include "data/split/document_subset.h"

namespace teratron {

// By what rule documents are shared out to the parts of a corpus.
struct SplitRule {
  std::optional<std::uint64_t> seed;  // documents are drawn at random by it (document_draw.h); none: in file order
  bool operator==(const SplitRule&) const = default;
};
constexpr SplitRule kFileOrder;

// A part of a corpus: documents in the order of the file. They are a run of it, or those that were drawn. Copies share
// the memory of what was drawn.
struct CorpusPart {
  std::string name;  // "training", "validation" or "test"
  // Of a run: its documents are those that have tokens in it, the outer ones cut where the run begins and ends.
  TokenRange run;
  std::int64_t first_document = 0, end_document = 0;  // end: one past the last
  std::shared_ptr<const DocumentSubset> drawn;        // whole documents; nullptr: the part is a run

  std::int64_t documents() const { return drawn ? drawn->documents() : end_document - first_document; }
  std::int64_t tokens() const { return drawn ? drawn->tokens() : run.size(); }
  // The number in the corpus of the part's document i in [0, documents()).
  std::int64_t number(std::int64_t i) const;
  // The part's own tokens of that document.
  TokenRange document(const IndexedDataset& dataset, std::int64_t i) const;
  // Reads out.size() tokens from `position` on, of the part's documents joined to one stream of tokens() tokens.
  void read(const IndexedDataset& dataset, std::int64_t position, std::span<std::int32_t> out) const;
};

// Weights as "29,1" or "969,30,1": one to three, at least one above zero. Empty where it is no such list.
std::vector<double> parse_split(std::string_view text);

// Shares a corpus out to as many parts as there are weights: training, validation, test. Documents stay whole, shares
// are counted in documents, and every weight above zero gets at least one. The parts do not depend on the seed of the
// training, so no run trains on what another one with the same rule is validated on.
//   At random, as in the Megatron-LM paper: each document is drawn by itself, so it keeps its part when the corpus
//   grows
// at its end (document_draw.h has the one exception). Memory: 1.25 bits a document for each part, and a byte a document
// meanwhile.
//   In file order, as in Megatron-LM's code: each part is a run of documents.
// A corpus with fewer documents than weights above zero is cut by token position, whatever the rule.
std::vector<CorpusPart> split_corpus(const IndexedDataset& dataset, std::span<const double> weights,
                                     const SplitRule& rule);

}  // namespace teratron
