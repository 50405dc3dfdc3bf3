// What the pairs of BERT are cut from: runs of consecutive sentences, each for one sample.
#pragma once

#include <cstdint>
#include <vector>

#include "data/indexed/indexed_dataset.h"
#include "data/split/corpus_split.h"

namespace teratron {

// Sentences [first, end) of one document: sequences of the dataset. `first` has tokens; two of them at least do.
struct SentenceSegment {
  std::int64_t first = 0, end = 0;
  std::int64_t target = 0;  // tokens of a sample made of them, at most
  bool operator==(const SentenceSegment&) const = default;
};

// Cuts the documents of a part into segments, one document after the other, in the order of the file. Sentences without
// tokens count for nothing. A document with fewer than two others is left out; of every other document, each sentence
// is in one segment. A segment takes sentences until they reach its target and are two at least, but never leaves a
// single sentence behind it: the last segment of a document takes that too. Its target is `longest`; for a share
// `short_share` of them, it is drawn evenly from 2, ..., longest instead. Of a document that the part holds cut, whole
// sentences count.
//
// A pure function of (dataset, part, longest, short_share, seed). Built in one pass over the index by all threads,
// which ends for any corpus. Memory: 3 bytes a segment, and 0.1 bytes a document at most; a segment is found in O(log
// segments) and a walk over at most 8 segments and the 256 documents they are in. Safe to use from many threads.
// Refers to `dataset`, which must outlive it.
class SentenceSegments {
 public:
  // longest >= 2, 0 <= short_share <= 1.
  SentenceSegments(const IndexedDataset& dataset, CorpusPart part, std::int64_t longest, double short_share,
                   std::uint64_t seed);

  std::int64_t count() const { return counts_.segments; }
  std::int64_t documents() const { return counts_.documents; }  // not left out
  std::int64_t sentences() const { return counts_.sentences; }  // of those documents, with tokens
  SentenceSegment operator[](std::int64_t index) const;         // in [0, count())

  // The first sentence with tokens in [at, end), else `end`.
  std::int64_t next_sentence(std::int64_t at, std::int64_t end) const;

 private:
  static constexpr std::int64_t kSegmentsPerMark = 8, kDocumentsPerRun = 256;
  struct Counts {
    std::int64_t documents = 0, sentences = 0, segments = 0;
  };
  // Where the walk to some segments begins.
  struct Mark {
    std::int64_t segment = 0;   // the first of them
    std::int64_t document = 0;  // of the part
    std::int64_t sentence = 0;  // that segment's first
  };
  struct Sentences {
    std::int64_t begin = 0, end = 0;
  };
  Sentences sentences_of(std::int64_t document) const;
  SentenceSegment segment_from(std::int64_t first, std::int64_t end) const;
  std::int64_t draw_target(std::int64_t first) const;
  void mark_run(std::int64_t first_document, std::int64_t end_document, Counts& counts, std::vector<Mark>& marks) const;

  const IndexedDataset* dataset_;
  CorpusPart part_;
  std::int64_t longest_;
  double short_share_;
  std::uint64_t seed_;
  Counts counts_;
  std::vector<Mark> marks_;
};

}  // namespace teratron
