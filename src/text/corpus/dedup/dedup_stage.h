// data dedup: keeps the first of documents that are nearly the same.
#pragma once

#include <filesystem>
#include <memory>

#include "corpus/stream/stage.h"
#include "corpus/stream/stream.h"
#include "options/fields.h"

namespace teratron {

struct DedupOptions {
  double jaccard = 0.7;          // sets of n-grams with a higher similarity are duplicates
  std::int64_t ngram = 5;        // words (words.h)
  std::filesystem::path folder;  // for the index
};

// Compares documents by the sets of their n-grams of words. Documents that share a band (minhash.h) are candidates.
// Each pair of candidates is compared exactly; it is a pair of duplicates if its Jaccard similarity is above `jaccard`.
// Pairs join documents to groups, and the first document of a group in the stream's order is kept. A dropped document
// ("duplicate", with the one that is kept) is thus a duplicate of some document of its group, not always of the one
// that is kept. A document without words is a duplicate of those with the same characters except white space. Memory: 8
// bytes a document beside the stream's, and a part of the index per thread; the index takes 16 bytes a band and
// document on disk (416 a document with 26 bands), in 256 parts. Comparisons read documents from the spool. Thousands
// of dissimilar documents that share a band are compared pairwise; that is slow, and was not seen in texts.
std::unique_ptr<Stage> make_dedup_stage(DedupOptions options);

struct DedupSettings {
  static constexpr StageText kText{.name = "dedup",
                                   .summary = "keeps the first of documents that are nearly the same",
                                   .doing = "looking for duplicates"};
  DedupOptions options;

  void add_fields(FieldList& list);
  Faults faults(bool runs) const;
  std::unique_ptr<Stage> make(const StreamOptions& stream) const;
};

}  // namespace teratron
