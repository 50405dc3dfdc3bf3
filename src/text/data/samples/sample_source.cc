#include "data/samples/sample_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace teratron {
namespace {

constexpr std::size_t kMostNamed = 4;

// Names of the documents in a part of one shard.
void add_documents(const IndexedShard& shard, TokenRange range, std::vector<std::string>& names) {
  while (range.size() > 0) {
    const std::int64_t number = shard.index().document_at(range.begin);
    const TokenRange document = shard.document(number);
    const std::int64_t end = std::min(document.end, range.end);
    if (end <= range.begin) return;  // tokens of no document
    names.push_back(fmt::format("document {} of '{}', tokens {} to {}", number, shard.prefix().string(),
                                range.begin - document.begin, end - document.begin - 1));
    range.begin = end;
  }
}

}  // namespace

std::string source_of(const IndexedDataset& dataset, std::span<const TokenRange> ranges) {
  std::vector<std::string> names;
  for (const TokenRange& range : ranges) {
    std::int64_t before = 0;  // tokens of the shards before
    for (const IndexedShard& shard : dataset.shards()) {
      const TokenRange here{std::max(range.begin - before, std::int64_t{0}),
                            std::min(range.end - before, shard.tokens())};
      add_documents(shard, here, names);
      before += shard.tokens();
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) text += (i == 0 ? "" : "; ") + names[i];
  if (names.size() > kMostNamed) text += fmt::format("; and {} more documents", names.size() - kMostNamed);
  return text;
}

}  // namespace teratron
