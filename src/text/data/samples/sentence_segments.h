// Segments for BERT's pairs: runs of consecutive sentences, each for one sample.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "data/indexed/indexed_dataset.h"
#include "data/split/corpus_split.h"

namespace teratron {

// Purposes of random draws. Adding one is safe; changing one changes the samples of every run.
enum class BertDraw : std::uint32_t {
  kLengths = 0,       // segments' lengths; by the first sentence
  kOrder = 1,         // the order of an epoch's segments; by the epoch
  kPairs = 2,         // cut of the segment, which side comes first, tokens cut off; by the sample's position
  kMasks = 3,         // masked words; by the sample's position
  kReplacements = 4,  // replacements of masked tokens
};

// The stream for one number in [0, 2^52).
inline RandomStream bert_stream(BertDraw what, std::uint64_t seed, std::int64_t number) {
  check(number >= 0 && number < std::int64_t{1} << 52, "bert_stream: number");
  return {.seed = seed,
          .purpose = RandomPurpose::kBertSamples,
          .stream = static_cast<std::uint32_t>(what) << 20 | static_cast<std::uint32_t>(number >> 32),
          .step = static_cast<std::uint32_t>(number)};
}

// Sentences [first, end) of one document: sequences of the dataset. `first` and at least one other have tokens.
struct SentenceSegment {
  std::int64_t first = 0, end = 0;
  std::int64_t target = 0;  // highest number of tokens of its sample
  bool operator==(const SentenceSegment&) const = default;
};

// Cuts the documents of a part into segments, in file order. Sentences without tokens are ignored. Documents with fewer
// than two other sentences are left out; in others each sentence is in one segment. A segment takes at least two
// sentences and until they reach its target, but never leaves a single one: the last segment takes that too. The target
// is `longest`; for a share `short_share` of segments it is drawn uniformly from 2, ..., longest. If the part cuts a
// document, whole sentences count.
//
// A pure function of (dataset, part, longest, short_share, seed). Built in one pass over the index by all threads.
// Memory: at most 3 bytes a segment and 0.1 bytes a document. A segment is found in O(log segments) and a walk over at
// most 8 segments and the 256 documents they are in. Safe to use from many threads. Refers to `dataset`, which must
// outlive it.
class SentenceSegments {
 public:
  // longest >= 2, 0 <= short_share <= 1.
  SentenceSegments(const IndexedDataset& dataset, CorpusPart part, std::int64_t longest, double short_share,
                   std::uint64_t seed);

  std::int64_t count() const { return counts_.segments; }
  std::int64_t documents() const { return counts_.documents; }  // with segments
  std::int64_t sentences() const { return counts_.sentences; }  // of those documents, with tokens
  SentenceSegment operator[](std::int64_t index) const;         // in [0, count())

  // The first sentence with tokens in [at, end), else `end`.
  std::int64_t next_sentence(std::int64_t at, std::int64_t end) const;

 private:
  static constexpr std::int64_t kSegmentsPerMark = 8, kDocumentsPerRun = 256;
  struct Counts {
    std::int64_t documents = 0, sentences = 0, segments = 0;
  };
  // The start of a walk to some segments.
  struct Mark {
    std::int64_t segment = 0;   // the first of them
    std::int64_t document = 0;  // in the part
    std::int64_t sentence = 0;  // the first of that segment
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
