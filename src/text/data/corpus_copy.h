// Copies documents between tokenised corpora as stored, without tokenising: for `data merge`, `data split` and `data
// sample`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/indexed/corpus_sidecar.h"
#include "data/indexed/indexed_dataset.h"

namespace teratron {

// The source of a copy: corpora with consecutive document numbers, and what they have in common.
struct CopySource {
  std::shared_ptr<const IndexedDataset> dataset;
  TokenType token_type = TokenType::kU16;
  // Sidecar of each shard: all with one tokenizer and kind of unit, or none.
  std::vector<std::optional<CorpusSidecar>> sidecars;
};

// `words` as open_corpus() takes them. UserError: as there; corpora that store tokens in different types, come from
// different tokenizers or have units of different kinds (names the two; sentences are one kind, however found); some
// with a sidecar and some without; a sidecar of other files.
CopySource open_copy_source(std::span<const std::string> words);

// UserError: an `out` that is a source, or is named twice. copy_documents() calls it too.
void require_other_places(const CopySource& source, std::span<const std::filesystem::path> outs);

struct CopiedCorpus {
  std::filesystem::path prefix;
  std::int64_t documents = 0, sequences = 0, tokens = 0;
};

// Copies document d of `source` to outs[parts[d]], or nowhere if there is no such out; to the first if `parts` is
// empty. Documents keep their order and their sequences. The result has the bytes that tokenising the same documents
// would write. Memory: 4 bytes a sequence and 8 a document. `progress` is called with the share that is done. All
// corpora are whole on the disk before the first gets its name. UserError: an `out` that is a source, or is named
// twice; a copied block that differs from its checksum in the sidecar; an out without documents. EnvironmentError: as
// IndexedDatasetWriter.
std::vector<CopiedCorpus> copy_documents(const CopySource& source, std::span<const std::filesystem::path> outs,
                                         std::span<const std::uint8_t> parts,
                                         const std::function<void(double share)>& progress = {});

}  // namespace teratron
