#include "data/samples/epoch_order.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/host/threads.h"

namespace teratron {
namespace {

// Streams of RandomPurpose::kShuffle, with the epoch as the step. Adding one is safe;
// changing one changes the order of every run.
enum class Shuffle : std::uint32_t { kShards = 0, kSkipped = 1, kDocuments = 16, kChunks = 32 };

RandomStream stream_of(Shuffle what, std::uint64_t seed, std::uint32_t epoch, std::int64_t shard = 0) {
  return {.seed = seed,
          .purpose = RandomPurpose::kShuffle,
          .stream = static_cast<std::uint32_t>(what) + static_cast<std::uint32_t>(shard),
          .step = epoch};
}

}  // namespace

EpochOrder::EpochOrder(const IndexedDataset& dataset, CorpusPart part, std::int64_t seq_length, std::uint64_t seed,
                       std::int64_t epoch)
    : dataset_(&dataset), part_(std::move(part)), seq_length_(seq_length) {
  check(epoch >= 0 && epoch <= 0xffffffff, "EpochOrder: epoch");
  const auto step = static_cast<std::uint32_t>(epoch);
  place_documents(seed, step);
  mark_stream();
  place_chunks(seed, step);
}

void EpochOrder::place_documents(std::uint64_t seed, std::uint32_t epoch) {
  const auto shards = static_cast<std::int64_t>(kShards);
  const RandomPermutation order(shards, stream_of(Shuffle::kShards, seed, epoch));
  std::int64_t rank = 0;
  for (std::size_t slot = 0; slot < kShards; ++slot) {
    const std::int64_t number = order(static_cast<std::int64_t>(slot));
    const std::int64_t begin = part_.documents() * number / shards, end = part_.documents() * (number + 1) / shards;
    shards_[slot].first_document = begin;
    shards_[slot].first_rank = rank;
    shards_[slot].documents = RandomPermutation(end - begin, stream_of(Shuffle::kDocuments, seed, epoch, number));
    rank += end - begin;
  }
}

void EpochOrder::mark_stream() {
  const std::int64_t documents = part_.documents();
  const std::int64_t runs = (documents + kDocumentsPerMark - 1) / kDocumentsPerMark;
  marks_.assign(static_cast<std::size_t>(runs) + 1, 0);
  parallel_for(runs, 1024, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t run = begin; run < end; ++run) {
      const std::int64_t last = std::min(documents, (run + 1) * kDocumentsPerMark);
      std::int64_t& length = marks_[static_cast<std::size_t>(run) + 1];
      for (std::int64_t rank = run * kDocumentsPerMark; rank < last; ++rank) length += document_at(rank).size();
    }
  });
  for (std::size_t run = 1; run < marks_.size(); ++run) marks_[run] += marks_[run - 1];
  check_equal(marks_.back(), part_.tokens(), "tokens of an epoch");
}

void EpochOrder::place_chunks(std::uint64_t seed, std::uint32_t epoch) {
  const std::int64_t count = chunks(part_, seq_length_);
  const std::int64_t left_over = part_.tokens() - 1 - count * seq_length_;
  RandomSequence random(stream_of(Shuffle::kSkipped, seed, epoch));
  if (count > 0) skipped_ = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(left_over) + 1));
  for (std::size_t slot = 0; slot < kShards; ++slot) {
    const std::int64_t begin = stream_begin(shards_[slot].first_rank);
    shards_[slot].first_chunk = std::clamp((begin - skipped_ + seq_length_ - 1) / seq_length_, std::int64_t{0}, count);
  }
  for (std::size_t slot = 0; slot < kShards; ++slot) {
    const std::int64_t end = slot + 1 < kShards ? shards_[slot + 1].first_chunk : count;
    shards_[slot].chunks = RandomPermutation(end - shards_[slot].first_chunk,
                                             stream_of(Shuffle::kChunks, seed, epoch, static_cast<std::int64_t>(slot)));
  }
}

// The offset in the stream of the document of this rank; past the last rank, the end of the stream.
std::int64_t EpochOrder::stream_begin(std::int64_t rank) const {
  const std::int64_t run = rank / kDocumentsPerMark;
  std::int64_t position = marks_[static_cast<std::size_t>(run)];
  for (std::int64_t before = run * kDocumentsPerMark; before < rank; ++before) position += document_at(before).size();
  return position;
}

TokenRange EpochOrder::document_at(std::int64_t rank) const {
  std::size_t slot = kShards - 1;
  while (shards_[slot].first_rank > rank) --slot;
  const Shard& shard = shards_[slot];
  return part_.document(*dataset_, shard.first_document + shard.documents(rank - shard.first_rank));
}

std::int64_t EpochOrder::position_of_chunk(std::int64_t index) const {
  check(index >= 0 && index < chunks(part_, seq_length_), "EpochOrder: no such chunk");
  std::size_t slot = kShards - 1;
  while (shards_[slot].first_chunk > index) --slot;
  const Shard& shard = shards_[slot];
  return skipped_ + (shard.first_chunk + shard.chunks(index - shard.first_chunk)) * seq_length_;
}

std::vector<TokenRange> EpochOrder::ranges(std::int64_t index) const {
  std::int64_t position = position_of_chunk(index), left = seq_length_ + 1;
  const auto mark = std::ranges::upper_bound(marks_, position) - 1;
  std::int64_t rank = (mark - marks_.begin()) * kDocumentsPerMark;
  std::int64_t begin = *mark;  // offset in the stream of the document of this rank
  std::vector<TokenRange> ranges;
  while (left > 0) {
    const TokenRange document = document_at(rank);
    if (position < begin + document.size()) {
      const std::int64_t from = document.begin + (position - begin);
      const std::int64_t count = std::min(document.end - from, left);
      ranges.push_back({from, from + count});
      left -= count;
      position += count;
    }
    begin += document.size();
    ++rank;
  }
  return ranges;
}

void EpochOrder::read(std::int64_t index, std::span<std::int32_t> tokens) const {
  check_equal(static_cast<std::int64_t>(tokens.size()), seq_length_ + 1, "tokens of a chunk");
  for (const TokenRange& range : ranges(index)) {
    const auto count = static_cast<std::size_t>(range.size());
    dataset_->read(range.begin, tokens.first(count));
    tokens = tokens.subspan(count);
  }
}

}  // namespace teratron
