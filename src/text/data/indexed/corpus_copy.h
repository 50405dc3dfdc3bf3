// Documents of tokenised corpora to other ones, as the files hold them: nothing is tokenised again. The way of
// `data merge`, `data split` and `data sample`.
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

// What is copied from: corpora whose documents are numbered through, and what they have in common.
struct CopySource {
  std::shared_ptr<const IndexedDataset> dataset;
  TokenType token_type = TokenType::kU16;
  std::vector<std::optional<CorpusSidecar>> sidecars;  // of each shard: all of one tokenizer and unit, or none
};

// `words` as open_corpus() takes them. UserError: as there; corpora that store tokens in different types, come from
// different tokenizers or have different units (names the two); some with a sidecar and some without; a sidecar of
// other files.
CopySource open_copy_source(std::span<const std::string> words);

// UserError: an `out` that is a source, or is named twice. copy_documents() asks it too.
void require_other_places(const CopySource& source, std::span<const std::filesystem::path> outs);

struct CopiedCorpus {
  std::filesystem::path prefix;
  std::int64_t documents = 0, sequences = 0, tokens = 0;
};

// Document d of `source` goes to outs[parts[d]], or nowhere where there is no such out; all go to the first where
// `parts` is empty. Documents keep their order and their sequences. What tokenising the same documents would write is
// written, byte for byte. Memory: 4 bytes a sequence and 8 a document. `progress`, where given, is told the share that
// is done. All corpora are whole on the disk before the first has its name. UserError: an `out` that is a source, or is
// named twice; a source with bytes that are not those its sidecar tells, in a block that a document is copied from; an
// out without documents. EnvironmentError: as IndexedDatasetWriter.
std::vector<CopiedCorpus> copy_documents(const CopySource& source, std::span<const std::filesystem::path> outs,
                                         std::span<const std::uint8_t> parts,
                                         const std::function<void(double share)>& progress = {});

}  // namespace teratron
