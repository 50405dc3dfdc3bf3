#include "data/split/document_subset.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/host/threads.h"

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

}  // namespace teratron
