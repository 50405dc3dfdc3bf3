// data dedup: of documents that are nearly the same, the first one.
#pragma once

#include <filesystem>
#include <memory>

#include "corpus/stream/stage.h"

namespace teratron {

struct DedupOptions {
  double jaccard = 0.7;          // sets of n-grams that are more alike are duplicates
  std::int64_t ngram = 5;        // words (words.h)
  std::filesystem::path folder;  // for the index
};

// Documents are compared by the sets of their n-grams of words. Those that meet in a band (minhash.h) are candidates;
// each pair of candidates is then compared exactly, and is one of duplicates where its Jaccard similarity is above
// `jaccard`. Pairs join documents to groups, and of each group the first in the stream's order is kept. So a document
// that is dropped ("duplicate", with the one that is kept) is a duplicate of some document of the stream; not always of
// the one that is kept. A document without words is a duplicate of those with the same characters but white space.
// Memory: 8 bytes a document beside the stream's; the index takes 16 bytes a band and document, and is on disk.
std::unique_ptr<Stage> make_dedup_stage(DedupOptions options);

}  // namespace teratron
