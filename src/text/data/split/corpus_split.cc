#include "data/split/corpus_split.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/host/threads.h"
#include "data/split/document_choice.h"

namespace teratron {

DocumentSubset::DocumentSubset(const IndexedDataset& dataset, std::span<const std::uint8_t> parts, std::uint8_t part) {
  const std::int64_t documents = dataset.documents();
  check_equal(static_cast<std::int64_t>(parts.size()), documents, "documents of a corpus");
  constexpr std::int64_t kDocumentsPerMark = kDocumentsPerWord * kWordsPerMark;
  const std::int64_t runs = (documents + kDocumentsPerMark - 1) / kDocumentsPerMark;
  words_.resize(static_cast<std::size_t>(runs * kWordsPerMark));
  marks_.resize(static_cast<std::size_t>(runs) + 1);
  parallel_for(runs, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t document = begin * kDocumentsPerMark; document < std::min(documents, end * kDocumentsPerMark);
         ++document) {
      if (parts[static_cast<std::size_t>(document)] != part) continue;
      words_[static_cast<std::size_t>(document / kDocumentsPerWord)] |= std::uint64_t{1}
                                                                        << (document % kDocumentsPerWord);
      Mark& next = marks_[static_cast<std::size_t>(document / kDocumentsPerMark) + 1];
      ++next.documents;
      next.tokens += dataset.document(document).size();
    }
  });
  for (std::size_t i = 1; i < marks_.size(); ++i) {
    marks_[i].documents += marks_[i - 1].documents;
    marks_[i].tokens += marks_[i - 1].tokens;
  }
}

std::int64_t DocumentSubset::document(std::int64_t i) const {
  check(i >= 0 && i < documents(), "DocumentSubset: no such document");
  const auto mark = std::ranges::upper_bound(marks_, i, {}, &Mark::documents) - 1;
  std::int64_t before = i - mark->documents;  // members to skip from the mark
  std::int64_t word = (mark - marks_.begin()) * kWordsPerMark;
  std::uint64_t members = words_[static_cast<std::size_t>(word)];
  while (before >= std::popcount(members)) {
    before -= std::popcount(members);
    members = words_[static_cast<std::size_t>(++word)];
  }
  for (; before > 0; --before) members &= members - 1;  // clears the lowest bit
  return word * kDocumentsPerWord + std::countr_zero(members);
}

void DocumentSubset::read(const IndexedDataset& dataset, std::int64_t position, std::span<std::int32_t> out) const {
  const auto count = static_cast<std::int64_t>(out.size());
  check(position >= 0 && count <= tokens() && position <= tokens() - count, "DocumentSubset: read outside of it");
  const auto mark = std::ranges::upper_bound(marks_, position, {}, &Mark::tokens) - 1;
  std::int64_t begin = mark->tokens;  // offset of the current document in the stream
  for (std::int64_t word = (mark - marks_.begin()) * kWordsPerMark; !out.empty(); ++word) {
    std::uint64_t members = words_[static_cast<std::size_t>(word)];
    for (; members != 0 && !out.empty(); members &= members - 1) {
      const TokenRange document = dataset.document(word * kDocumentsPerWord + std::countr_zero(members));
      if (position < begin + document.size()) {
        const std::int64_t from = document.begin + (position - begin);
        const auto length = std::min(static_cast<std::size_t>(document.end - from), out.size());
        dataset.read(from, out.first(length));
        out = out.subspan(length);
        position += static_cast<std::int64_t>(length);
      }
      begin += document.size();
    }
  }
}

namespace {

constexpr std::array<const char*, 3> kPartNames = {"training", "validation", "test"};

// The ends of the parts of `count` things; each weight above zero gets at least one thing if there are enough.
std::vector<std::int64_t> part_ends(std::int64_t count, std::span<const double> weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::int64_t still_due = std::ranges::count_if(weights, [](double weight) { return weight > 0; });
  std::vector<std::int64_t> ends;
  double sum = 0;
  std::int64_t end = 0;
  for (const double weight : weights) {
    sum += weight;
    if (weight > 0) {
      --still_due;
      const std::int64_t wanted = std::llround(static_cast<double>(count) * (sum / total));
      end = std::max(end, std::min(std::max(wanted, end + 1), count - still_due));
    }
    ends.push_back(end);
  }
  return ends;
}

// The offset where document `document` begins, or where the last one ends.
std::int64_t document_begin(const IndexedDataset& dataset, std::int64_t document) {
  return document == dataset.documents() ? dataset.tokens() : dataset.document(document).begin;
}

CorpusPart part_of_documents(const IndexedDataset& dataset, std::int64_t begin, std::int64_t end) {
  return {.name = {},
          .run = {document_begin(dataset, begin), document_begin(dataset, end)},
          .first_document = begin,
          .end_document = end};
}

CorpusPart part_of_tokens(const IndexedDataset& dataset, std::int64_t begin, std::int64_t end) {
  CorpusPart part{.name = {}, .run = {begin, end}};
  // At most two documents to search: three parts are needed for this cut.
  auto& first = part.first_document;
  while (first < dataset.documents() && dataset.document(first).end <= begin) ++first;
  part.end_document = first;
  while (part.end_document < dataset.documents() && document_begin(dataset, part.end_document) < end) {
    ++part.end_document;
  }
  return part;
}

std::vector<CorpusPart> parts_in_file_order(const IndexedDataset& dataset, std::span<const double> weights,
                                            bool by_document) {
  std::vector<CorpusPart> parts;
  std::int64_t begin = 0;
  for (const std::int64_t end : part_ends(by_document ? dataset.documents() : dataset.tokens(), weights)) {
    parts.push_back(by_document ? part_of_documents(dataset, begin, end) : part_of_tokens(dataset, begin, end));
    begin = end;
  }
  return parts;
}

std::vector<CorpusPart> drawn_parts(const IndexedDataset& dataset, std::span<const double> weights,
                                    std::uint64_t seed) {
  const std::vector<std::uint8_t> part_of = draw_parts(dataset.documents(), weights, seed);
  std::vector<CorpusPart> parts(weights.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].drawn = std::make_shared<const DocumentSubset>(dataset, part_of, static_cast<std::uint8_t>(i));
  }
  return parts;
}

}  // namespace

std::int64_t CorpusPart::number(std::int64_t i) const {
  check(i >= 0 && i < documents(), "CorpusPart: no such document");
  return drawn ? drawn->document(i) : first_document + i;
}

TokenRange CorpusPart::document(const IndexedDataset& dataset, std::int64_t i) const {
  const TokenRange whole = dataset.document(number(i));
  if (drawn) return whole;
  return {std::max(whole.begin, run.begin), std::min(whole.end, run.end)};
}

void CorpusPart::read(const IndexedDataset& dataset, std::int64_t position, std::span<std::int32_t> out) const {
  if (drawn) return drawn->read(dataset, position, out);
  const auto count = static_cast<std::int64_t>(out.size());
  check(position >= 0 && count <= run.size() && position <= run.size() - count, "CorpusPart: read outside of it");
  dataset.read(run.begin + position, out);
}

std::vector<double> parse_split(std::string_view text) {
  std::vector<double> weights;
  const char *next = text.data(), *const end = text.data() + text.size();
  while (true) {
    double weight = 0;
    const auto [stop, error] = std::from_chars(next, end, weight);
    if (error != std::errc() || !(weight >= 0) || !(weight <= 1e9) || (stop != end && *stop != ',')) return {};
    weights.push_back(weight);
    if (stop == end) break;
    next = stop + 1;
  }
  if (weights.size() > kPartNames.size() || *std::ranges::max_element(weights) <= 0) return {};
  return weights;
}

std::vector<CorpusPart> split_corpus(const IndexedDataset& dataset, std::span<const double> weights,
                                     const SplitRule& rule) {
  check(!weights.empty() && weights.size() <= kPartNames.size(), "split_corpus: one to three weights");
  const auto parts_due = std::ranges::count_if(weights, [](double weight) { return weight > 0; });
  const bool by_document = dataset.documents() >= parts_due;
  std::vector<CorpusPart> parts = rule.seed && by_document ? drawn_parts(dataset, weights, *rule.seed)
                                                           : parts_in_file_order(dataset, weights, by_document);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].name = kPartNames[i];
  return parts;
}

}  // namespace teratron
