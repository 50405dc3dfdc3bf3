// Checks a share of a corpus before it is read for hours: whether it is unchanged, and whether its tokenizer can have
// made it. Other damage is found when it is read (IndexedDataset::read) or by verify_corpus().
#pragma once

#include <cstdint>

#include "data/indexed/indexed_dataset.h"

namespace teratron {

// Blocks have a MiB each; the first and the last of each shard are among them. A corpus with fewer is read whole.
constexpr std::int64_t kCheckedBlocks = 128;

// Compares sizes, the whole .idx and blocks of the .bin with the sidecar of each shard that has one, and ids with the
// vocabulary. `seed` selects the blocks. Takes the time of reading them, with all threads. UserError: the difference
// and its offset. EnvironmentError: a file cannot be read.
void check_content(const IndexedDataset& dataset, std::int64_t vocab_size, std::uint64_t seed,
                   std::int64_t blocks = kCheckedBlocks);

// Identifies a corpus for a resumed run, wherever and in however many shards it lies: a hash of the lengths of all
// documents and sequences and of up to 2^20 tokens at positions that follow from the number of tokens (all tokens if
// there are no more). Not negative. Errors as IndexedDataset::read.
std::int64_t content_fingerprint(const IndexedDataset& dataset);

}  // namespace teratron
