// Training, validation and test parts of a corpus.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/indexed_dataset.h"

namespace teratron {

// A run of a corpus. Its documents are those that have tokens in it, the outer ones cut where the run begins and ends.
struct CorpusPart {
  std::string name;  // "training", "validation" or "test"
  TokenRange tokens;
  std::int64_t first_document = 0, end_document = 0;  // end: one past the last

  std::int64_t documents() const { return end_document - first_document; }
  // The part's own tokens of its document i in [0, documents()).
  TokenRange document(const IndexedDataset& dataset, std::int64_t i) const;
};

// Weights as "29,1" or "969,30,1": one to three, at least one above zero. UserError otherwise.
std::vector<double> parse_split(std::string_view text);

// Cuts a corpus into as many parts as there are weights: training, validation, test. Documents stay whole and in the
// order of the file, as Megatron-LM has it: the parts do not depend on the seed, so no run trains on what another one
// is validated on. The shares are counted in documents, and every weight above zero gets at least one. A corpus with
// fewer documents than such weights is cut by token position instead.
std::vector<CorpusPart> split_corpus(const IndexedDataset& dataset, std::span<const double> weights);

}  // namespace teratron
