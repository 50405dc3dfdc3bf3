#include "data/samples/packed_samples.h"

#include <algorithm>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "data/samples/sample_source.h"

namespace teratron {
namespace {

std::vector<TokenRange> pieces_of(const IndexedDataset& dataset, const CorpusPart& part, std::int64_t seq_length) {
  std::vector<TokenRange> pieces;
  for (std::int64_t i = 0; i < part.documents(); ++i) {
    const TokenRange document = part.document(dataset, i);
    for (std::int64_t begin = document.begin; begin < document.end - 1; begin += seq_length) {
      pieces.push_back({begin, std::min(begin + seq_length, document.end - 1)});
    }
  }
  if (!pieces.empty()) return pieces;
  throw_user_error(
      "no document of the {} part of {} has two tokens, so there is nothing to predict; give it more text, or a "
      "larger share in --split",
      part.name, dataset.name());
}

std::vector<std::int64_t> sizes_of(const std::vector<TokenRange>& ranges) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(ranges.size());
  for (const TokenRange& range : ranges) sizes.push_back(range.size());
  return sizes;
}

}  // namespace

PackedSamples::PackedSamples(std::shared_ptr<const IndexedDataset> dataset, const CorpusPart& part,
                             std::int64_t seq_length, SampleOrder order, std::uint64_t seed,
                             const DocumentOptions& documents)
    : dataset_(std::move(dataset)),
      seq_length_(seq_length),
      documents_(documents),
      pieces_(pieces_of(*dataset_, part, seq_length)),
      packing_(sizes_of(pieces_), seq_length, order, seed) {
  check(documents.reset_attention_mask, "PackedSamples: documents that do not see one another");
}

std::string PackedSamples::left_out() const {
  return fmt::format(
      "{} packed into {} an epoch, {:.2f} % of them padding",
      counted(std::ssize(pieces_), "document or piece of a long one", "documents and pieces of long ones"),
      counted(samples_per_epoch(), "sample"), 100 * packing_.padding());
}

std::vector<TokenRange> PackedSamples::pieces(std::int64_t position) const {
  std::vector<TokenRange> pieces;
  for (const std::int64_t item : packing_.items(position)) pieces.push_back(pieces_[static_cast<std::size_t>(item)]);
  return pieces;
}

std::string PackedSamples::source(std::int64_t position) const { return source_of(*dataset_, pieces(position)); }

SampleBatch PackedSamples::make_batch(std::int64_t samples) const {
  const std::int64_t tokens = samples * seq_length_;
  SampleBatch batch;
  resize_fields(tokens, batch.ids, batch.targets, batch.weights, batch.first_keys);
  if (documents_.reset_position_ids) resize_fields(tokens, batch.position_ids);
  return batch;
}

std::vector<std::int32_t> PackedSamples::first_keys(SampleRange positions) const {
  std::vector<std::int32_t> keys;
  keys.reserve(static_cast<std::size_t>(positions.count * seq_length_));
  for (std::int64_t i = 0; i < positions.count; ++i) {
    std::int32_t used = 0;
    for (const TokenRange& piece : pieces(positions.first + i)) {
      keys.insert(keys.end(), static_cast<std::size_t>(piece.size()), used);
      used += static_cast<std::int32_t>(piece.size());
    }
    for (; used < seq_length_; ++used) keys.push_back(used);
  }
  return keys;
}

void PackedSamples::read(SampleRange positions, SampleBatch& batch, std::int64_t at) const {
  const std::vector<std::int32_t> first_keys = this->first_keys(positions);
  std::ranges::copy(first_keys, batch.first_keys.begin() + at * seq_length_);
  for (std::size_t t = 0; documents_.reset_position_ids && t < first_keys.size(); ++t) {
    const auto place = static_cast<std::int32_t>(static_cast<std::int64_t>(t) % seq_length_);
    batch.position_ids[static_cast<std::size_t>(at * seq_length_) + t] = place - first_keys[t];
  }
  for (std::int64_t i = 0; i < positions.count; ++i) read_tokens(positions.first + i, batch, (at + i) * seq_length_);
}

// `begin`: index of the sample's first token in the batch.
void PackedSamples::read_tokens(std::int64_t position, SampleBatch& batch, std::int64_t begin) const {
  std::ptrdiff_t next = begin;
  std::vector<std::int32_t> tokens;
  for (const TokenRange& piece : pieces(position)) {
    tokens.resize(static_cast<std::size_t>(piece.size()) + 1);
    dataset_->read(piece.begin, tokens);
    std::copy(tokens.begin(), tokens.end() - 1, batch.ids.begin() + next);
    std::copy(tokens.begin() + 1, tokens.end(), batch.targets.begin() + next);
    std::fill_n(batch.weights.begin() + next, piece.size(), 1.0F);
    next += piece.size();
  }
  const std::int64_t padding = begin + seq_length_ - next;
  std::fill_n(batch.ids.begin() + next, padding, documents_.end_token);
  std::fill_n(batch.targets.begin() + next, padding, documents_.end_token);
  std::fill_n(batch.weights.begin() + next, padding, 0.0F);
}

Samples::TotalWeights PackedSamples::total_weights(SampleRange positions) const {
  std::int64_t targets = 0;
  for (std::int64_t i = 0; i < positions.count; ++i) {
    for (const TokenRange& piece : pieces(positions.first + i)) targets += piece.size();
  }
  return {.targets = static_cast<double>(targets)};
}

}  // namespace teratron
