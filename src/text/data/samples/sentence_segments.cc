#include "data/samples/sentence_segments.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/host/threads.h"

namespace teratron {

SentenceSegments::SentenceSegments(const IndexedDataset& dataset, CorpusPart part, std::int64_t longest,
                                   double short_share, std::uint64_t seed)
    : dataset_(&dataset), part_(std::move(part)), longest_(longest), short_share_(short_share), seed_(seed) {
  check(longest >= 2, "SentenceSegments: longest");
  check(short_share >= 0 && short_share <= 1, "SentenceSegments: short_share");
  const std::int64_t runs = (part_.documents() + kDocumentsPerRun - 1) / kDocumentsPerRun;
  std::vector<Counts> counts(static_cast<std::size_t>(runs));
  std::vector<std::vector<Mark>> marks(static_cast<std::size_t>(runs));
  parallel_for(runs, 1, [&](std::int64_t begin, std::int64_t) {
    const auto run = static_cast<std::size_t>(begin);
    mark_run(begin * kDocumentsPerRun, std::min(part_.documents(), (begin + 1) * kDocumentsPerRun), counts[run],
             marks[run]);
  });
  for (std::size_t run = 0; run < counts.size(); ++run) {
    for (Mark mark : marks[run]) {
      mark.segment += counts_.segments;
      marks_.push_back(mark);
    }
    marks[run] = {};
    counts_.documents += counts[run].documents;
    counts_.sentences += counts[run].sentences;
    counts_.segments += counts[run].segments;
  }
  marks_.shrink_to_fit();
}

// Marks count from the first segment of these documents.
void SentenceSegments::mark_run(std::int64_t first_document, std::int64_t end_document, Counts& counts,
                                std::vector<Mark>& marks) const {
  for (std::int64_t document = first_document; document < end_document; ++document) {
    const Sentences sentences = sentences_of(document);
    if (sentences.begin == sentences.end) continue;
    ++counts.documents;
    for (std::int64_t at = sentences.begin; at < sentences.end;) {
      if (counts.segments % kSegmentsPerMark == 0) {
        marks.push_back({.segment = counts.segments, .document = document, .sentence = at});
      }
      const SentenceSegment segment = segment_from(at, sentences.end);
      for (; at < segment.end; at = next_sentence(at + 1, segment.end)) ++counts.sentences;
      ++counts.segments;
    }
  }
}

// A document's sentences from the first with tokens on; empty if fewer than two have tokens.
SentenceSegments::Sentences SentenceSegments::sentences_of(std::int64_t document) const {
  const std::int64_t number = part_.number(document);
  const TokenRange own = part_.document(*dataset_, document);
  std::int64_t begin = dataset_->first_sequence(number), end = dataset_->first_sequence(number + 1);
  // The part may begin and end within a document, at any token.
  if (own != dataset_->document(number)) {
    const auto first_not = [&](auto&& is_before) {
      std::int64_t low = begin, high = end;
      while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (is_before(dataset_->sequence(middle))) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return low;
    };
    begin = first_not([&](TokenRange sentence) { return sentence.begin < own.begin; });
    end = std::max(begin, first_not([&](TokenRange sentence) { return sentence.end <= own.end; }));
  }
  begin = next_sentence(begin, end);
  const bool has_two = begin < end && next_sentence(begin + 1, end) < end;
  return {has_two ? begin : end, end};
}

std::int64_t SentenceSegments::next_sentence(std::int64_t at, std::int64_t end) const {
  while (at < end && dataset_->sequence_size(at) == 0) ++at;
  return at;
}

// The segment that begins at `first` in a document whose sentences end at `end`.
SentenceSegment SentenceSegments::segment_from(std::int64_t first, std::int64_t end) const {
  const std::int64_t target = draw_target(first);
  std::int64_t tokens = 0, sentences = 0;
  for (std::int64_t at = first; at < end;) {
    tokens += dataset_->sequence_size(at);
    ++sentences;
    at = next_sentence(at + 1, end);
    const bool is_enough = tokens >= target && sentences >= 2;
    if (is_enough && at < end && next_sentence(at + 1, end) < end) return {first, at, target};
  }
  return {first, end, target};
}

// Depends only on the segment's first sentence, so that documents can be cut in any order.
std::int64_t SentenceSegments::draw_target(std::int64_t first) const {
  RandomSequence random(bert_stream(BertDraw::kLengths, seed_, first));
  if (random.uniform() >= short_share_) return longest_;
  return 2 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(longest_ - 1)));
}

SentenceSegment SentenceSegments::operator[](std::int64_t index) const {
  check(index >= 0 && index < count(), "SentenceSegments: no such segment");
  const Mark mark = *(std::ranges::upper_bound(marks_, index, {}, &Mark::segment) - 1);
  std::int64_t document = mark.document;
  Sentences sentences = sentences_of(document);
  SentenceSegment segment = segment_from(mark.sentence, sentences.end);
  for (std::int64_t at = mark.segment; at < index; ++at) {
    std::int64_t next = segment.end;
    while (next == sentences.end) {
      sentences = sentences_of(++document);
      next = sentences.begin;
    }
    segment = segment_from(next, sentences.end);
  }
  return segment;
}

}  // namespace teratron
