// Statistics of a tokenised corpus, for `teratron data info`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "data/indexed/corpus_sidecar.h"
#include "data/indexed/indexed_format.h"

namespace teratron {

struct DatasetInfo {
  std::int64_t shards = 1;
  std::vector<TokenType> token_types;  // of the shards, each once
  std::int64_t documents = 0, sequences = 0, tokens = 0;
  std::int64_t bin_bytes = 0, idx_bytes = 0;
  // Tokens per document; zero if there are no documents.
  std::int64_t shortest_document = 0, median_document = 0, longest_document = 0;
  std::int64_t empty_documents = 0;
  std::int64_t documents_of_pairs =
      0;  // with two or more sequences that have tokens; BERT makes pairs of them if they are sentences
  std::int32_t largest_token = -1;  // -1 if there are no tokens
  std::optional<CorpusSidecar> sidecar;

  bool has_sentences() const { return sidecar && is_sentence(sidecar->unit); }
};

// Reads the whole corpus once, all shards; any thread calls `progress` with the share that is read. UserError as
// IndexedDataset::open and read, and read_sidecar.
DatasetInfo dataset_info(std::span<const std::filesystem::path> prefixes,
                         const std::function<void(double share)>& progress = {});

}  // namespace teratron
