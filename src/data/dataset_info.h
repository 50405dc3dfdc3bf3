// What `teratron data info` tells about a tokenised corpus.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "data/corpus_sidecar.h"
#include "data/indexed_format.h"

namespace teratron {

struct DatasetInfo {
  TokenType token_type = TokenType::kU16;
  std::int64_t documents = 0, sequences = 0, tokens = 0;
  std::int64_t bin_bytes = 0, idx_bytes = 0;
  // Tokens per document; zero where there are no documents.
  std::int64_t shortest_document = 0, median_document = 0, longest_document = 0;
  std::int64_t empty_documents = 0;
  std::int32_t largest_token = -1;  // -1 where there are no tokens
  std::optional<CorpusSidecar> sidecar;
};

// Reads the whole corpus once. UserError as IndexedDataset::open and read, and read_sidecar.
DatasetInfo dataset_info(const std::filesystem::path& prefix);

}  // namespace teratron
