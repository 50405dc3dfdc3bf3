#include "data/samples/packed_samples.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "data/samples/best_fit.h"
#include "data/samples/sample_source.h"

namespace teratron {
namespace {

constexpr std::uint32_t kPackedStream = 48;  // of RandomPurpose::kShuffle, beside those of epoch_order.cc

std::vector<TokenRange> pieces_of(const IndexedDataset& dataset, const CorpusPart& part, std::int64_t seq_length) {
  std::vector<TokenRange> pieces;
  for (std::int64_t i = 0; i < part.documents(); ++i) {
    const TokenRange document = part.document(dataset, i);
    for (std::int64_t begin = document.begin; begin < document.end - 1; begin += seq_length) {
      pieces.push_back({begin, std::min(begin + seq_length, document.end - 1)});
    }
  }
  return pieces;
}

}  // namespace

PackedSamples::PackedSamples(std::shared_ptr<const IndexedDataset> dataset, const CorpusPart& part,
                             std::int64_t seq_length, SampleOrder order, std::uint64_t seed,
                             const DocumentOptions& documents)
    : dataset_(std::move(dataset)),
      seq_length_(seq_length),
      order_(order),
      seed_(order == SampleOrder::kSequential ? 0 : seed),
      documents_(documents) {
  check(seq_length >= 1 && documents.reset_attention_mask, "PackedSamples: documents that do not see one another");
  pack(part);
  if (pieces_.empty()) {
    throw_user_error(
        "no document of the {} part of {} has two tokens, so there is nothing to predict; give it more text, or a "
        "larger share in --split",
        part.name, dataset_->name());
  }
}

void PackedSamples::pack(const CorpusPart& part) {
  const std::vector<TokenRange> pieces = pieces_of(*dataset_, part, seq_length_);
  std::vector<std::int64_t> sizes;
  sizes.reserve(pieces.size());
  for (const TokenRange& piece : pieces) sizes.push_back(piece.size());
  inputs_ = std::reduce(sizes.begin(), sizes.end());
  const std::vector<std::int64_t> bins = best_fit_decreasing(sizes, seq_length_);
  const std::int64_t samples = bins.empty() ? 0 : *std::ranges::max_element(bins) + 1;
  first_pieces_.assign(static_cast<std::size_t>(samples) + 1, 0);
  for (const std::int64_t bin : bins) ++first_pieces_[static_cast<std::size_t>(bin) + 1];
  std::partial_sum(first_pieces_.begin(), first_pieces_.end(), first_pieces_.begin());
  std::vector<std::int64_t> next = first_pieces_;
  pieces_.resize(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    pieces_[static_cast<std::size_t>(next[static_cast<std::size_t>(bins[i])]++)] = pieces[i];
  }
}

std::string PackedSamples::left_out() const {
  const std::int64_t places = samples_per_epoch() * seq_length_;
  return fmt::format("{} documents and pieces of long ones packed into {} samples an epoch, {:.2f} % of them padding",
                     pieces_.size(), samples_per_epoch(),
                     100 * static_cast<double>(places - inputs_) / static_cast<double>(places));
}

std::span<const TokenRange> PackedSamples::pieces(std::int64_t position) const {
  check(position >= 0, "PackedSamples: position");
  const std::int64_t samples = samples_per_epoch();
  const std::int64_t epoch = order_ == SampleOrder::kSequential ? 0 : position / samples;
  check(epoch <= 0xffffffff, "PackedSamples: epoch");
  const auto order = orders_.get(epoch, [&] {
    return RandomPermutation(samples, {.seed = seed_,
                                       .purpose = RandomPurpose::kShuffle,
                                       .stream = kPackedStream,
                                       .step = static_cast<std::uint32_t>(epoch)});
  });
  const auto sample = static_cast<std::size_t>((*order)(position % samples));
  const auto first = static_cast<std::size_t>(first_pieces_[sample]),
             end = static_cast<std::size_t>(first_pieces_[sample + 1]);
  return std::span(pieces_).subspan(first, end - first);
}

std::string PackedSamples::source(std::int64_t position) const { return source_of(*dataset_, pieces(position)); }

SampleBatch PackedSamples::make_batch(std::int64_t samples) const {
  const auto tokens = static_cast<std::size_t>(samples * seq_length_);
  SampleBatch batch;
  batch.ids.resize(tokens);
  batch.targets.resize(tokens);
  batch.weights.resize(tokens);
  batch.first_keys.resize(tokens);
  if (documents_.reset_position_ids) batch.position_ids.resize(tokens);
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
