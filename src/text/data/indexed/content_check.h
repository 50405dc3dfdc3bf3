// Looks at a share of a corpus before it is read for hours: whether it is still what was written, and what its
// tokenizer can have made. What lies elsewhere is seen when it is read (IndexedDataset::read) or by verify_corpus().
#pragma once

#include <cstdint>

#include "data/indexed/indexed_dataset.h"

namespace teratron {

// Of a MiB each; of every shard the first and the last one are among them. A corpus of fewer is read whole.
constexpr std::int64_t kCheckedBlocks = 128;

// Compares sizes, the whole .idx and blocks of the .bin with the sidecar of each shard that has one, and ids with the
// vocabulary; other blocks are drawn by another `seed`. Takes the time of reading them (all threads). UserError: what
// differs, with its place. EnvironmentError: a file cannot be read.
void check_content(const IndexedDataset& dataset, std::int64_t vocab_size, std::uint64_t seed,
                   std::int64_t blocks = kCheckedBlocks);

// By which a run that goes on knows its corpus again, wherever and in however many shards it lies: of the lengths of
// all documents and sequences and of up to 2^20 tokens, at places that follow from the number of tokens; a corpus of no
// more tokens is compared whole. Not negative. Errors as IndexedDataset::read.
std::int64_t content_fingerprint(const IndexedDataset& dataset);

}  // namespace teratron
