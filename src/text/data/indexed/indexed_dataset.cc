#include "data/indexed/indexed_dataset.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace teratron {

IndexedDataset IndexedDataset::open(const std::filesystem::path& prefix) { return open(std::array{prefix}); }

IndexedDataset IndexedDataset::open(std::span<const std::filesystem::path> prefixes) {
  check(!prefixes.empty(), "IndexedDataset: no shards");
  std::vector<IndexedShard> shards;
  for (const std::filesystem::path& prefix : prefixes) shards.push_back(IndexedShard::open(prefix));
  return IndexedDataset(std::move(shards));
}

IndexedDataset::IndexedDataset(std::vector<IndexedShard> shards)
    : shards_(std::make_shared<const std::vector<IndexedShard>>(std::move(shards))), starts_(1) {
  for (const IndexedShard& shard : *shards_) {
    const Start& start = starts_.back();
    starts_.push_back({.tokens = start.tokens + shard.tokens(),
                       .sequences = start.sequences + shard.sequences(),
                       .documents = start.documents + shard.documents()});
  }
}

IndexedDataset IndexedDataset::with_vocabulary(std::int64_t vocab_size) const {
  IndexedDataset bounded = *this;
  bounded.vocab_size_ = vocab_size;
  return bounded;
}

std::string IndexedDataset::name() const {
  const std::string first = fmt::format("'{}'", shards().front().prefix().string());
  const std::size_t more = shards().size() - 1;
  return more == 0 ? first : fmt::format("{} and {} more shard{}", first, more, more == 1 ? "" : "s");
}

// The shard of the global number `number`. Skips empty shards.
std::size_t IndexedDataset::shard_of(std::int64_t Start::*what, std::int64_t number) const {
  check(number >= 0 && number < starts_.back().*what, "IndexedDataset: no such sequence, document or token");
  if (shards().size() == 1) return 0;
  const auto next = std::ranges::upper_bound(starts_, number, {}, what);
  return static_cast<std::size_t>(next - starts_.begin()) - 1;
}

TokenRange IndexedDataset::sequence(std::int64_t sequence) const {
  const std::size_t shard = shard_of(&Start::sequences, sequence);
  const TokenRange range = shards()[shard].sequence(sequence - starts_[shard].sequences);
  return {starts_[shard].tokens + range.begin, starts_[shard].tokens + range.end};
}

std::int64_t IndexedDataset::sequence_size(std::int64_t sequence) const {
  const std::size_t shard = shard_of(&Start::sequences, sequence);
  return shards()[shard].sequence_size(sequence - starts_[shard].sequences);
}

TokenRange IndexedDataset::document(std::int64_t document) const {
  const std::size_t shard = shard_of(&Start::documents, document);
  const TokenRange range = shards()[shard].document(document - starts_[shard].documents);
  return {starts_[shard].tokens + range.begin, starts_[shard].tokens + range.end};
}

std::int64_t IndexedDataset::first_sequence(std::int64_t document) const {
  if (document == documents()) return sequences();
  const std::size_t shard = shard_of(&Start::documents, document);
  return starts_[shard].sequences + shards()[shard].first_sequence(document - starts_[shard].documents);
}

void IndexedDataset::read(std::int64_t position, std::span<std::int32_t> out) const {
  const auto count = static_cast<std::int64_t>(out.size());
  check(position >= 0 && count <= tokens() && position <= tokens() - count, "read: outside the corpus");
  while (!out.empty()) {
    const std::size_t shard = shard_of(&Start::tokens, position);
    const auto length = std::min(out.size(), static_cast<std::size_t>(starts_[shard + 1].tokens - position));
    shards()[shard].read(position - starts_[shard].tokens, out.first(length), vocab_size_);
    out = out.subspan(length);
    position += static_cast<std::int64_t>(length);
  }
}

void IndexedDataset::check_vocabulary(std::int64_t vocab_size) const {
  for (const IndexedShard& shard : shards()) shard.check_vocabulary(vocab_size);
}

}  // namespace teratron
