#include "data/samples/gpt_samples.h"

#include <algorithm>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "data/samples/sample_source.h"

namespace teratron {

GptSamples::GptSamples(std::shared_ptr<const IndexedDataset> dataset, CorpusPart part, std::int64_t seq_length,
                       SampleOrder order, std::uint64_t seed, const DocumentOptions& documents)
    : dataset_(std::move(dataset)),
      part_(std::move(part)),
      seq_length_(seq_length),
      order_(order),
      seed_(seed),
      documents_(documents) {
  check(seq_length >= 1, "GptSamples: seq_length");
  samples_per_epoch_ = EpochOrder::chunks(part_, seq_length);
  if (samples_per_epoch_ == 0) {
    throw_user_error(
        "the {} part of {} has {} of its {}, but one sequence of --seq-length {} needs {}; give "
        "it more text, a shorter --seq-length, or a larger share in --split",
        part_.name, dataset_->name(), part_.tokens(), counted(dataset_->tokens(), "token"), seq_length, seq_length + 1);
  }
}

void GptSamples::sample(std::int64_t position, std::span<std::int32_t> tokens) const {
  check(position >= 0, "GptSamples: position");
  check_equal(static_cast<std::int64_t>(tokens.size()), seq_length_ + 1, "tokens of a sample");
  const std::int64_t index = position % samples_per_epoch_;
  if (order_ == SampleOrder::kSequential) {
    part_.read(*dataset_, index * seq_length_, tokens);
  } else {
    epoch_order(position / samples_per_epoch_)->read(index, tokens);
  }
}

std::string GptSamples::source(std::int64_t position) const {
  const std::int64_t index = position % samples_per_epoch_;
  if (order_ == SampleOrder::kShuffled) {
    return source_of(*dataset_, epoch_order(position / samples_per_epoch_)->ranges(index));
  }
  return fmt::format("tokens {} to {} of the {} part of {}", index * seq_length_, (index + 1) * seq_length_, part_.name,
                     dataset_->name());
}

SampleBatch GptSamples::make_batch(std::int64_t samples) const {
  const std::int64_t tokens = samples * seq_length_;
  SampleBatch batch;
  resize_fields(tokens, batch.ids, batch.targets, batch.weights);
  if (documents_.reset_attention_mask) resize_fields(tokens, batch.first_keys);
  if (documents_.reset_position_ids) resize_fields(tokens, batch.position_ids);
  return batch;
}

void GptSamples::read(SampleRange positions, SampleBatch& batch, std::int64_t at) const {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(seq_length_ + 1));
  for (std::int64_t i = 0; i < positions.count; ++i) {
    sample(positions.first + i, tokens);
    const std::ptrdiff_t begin = (at + i) * seq_length_;
    std::copy(tokens.begin(), tokens.end() - 1, batch.ids.begin() + begin);
    std::copy(tokens.begin() + 1, tokens.end(), batch.targets.begin() + begin);
    std::fill_n(batch.weights.begin() + begin, seq_length_, 1.0F);
    if (documents_.any()) read_documents(batch, begin);
  }
}

void GptSamples::read_documents(SampleBatch& batch, std::int64_t begin) const {
  const auto first = static_cast<std::size_t>(begin), count = static_cast<std::size_t>(seq_length_);
  const auto ids = std::span<const std::int32_t>(batch.ids).subspan(first, count);
  if (documents_.reset_attention_mask) {
    find_document_starts(ids, documents_.end_token, std::span(batch.first_keys).subspan(first, count));
  }
  if (documents_.reset_position_ids) {
    find_document_positions(ids, documents_.end_token, std::span(batch.position_ids).subspan(first, count));
  }
  if (!documents_.eod_mask_loss) return;
  for (std::size_t t = 0; t < count; ++t) {
    if (ids[t] == documents_.end_token) batch.weights[first + t] = 0;
  }
}

Samples::TotalWeights GptSamples::total_weights(SampleRange positions) const {
  std::int64_t targets = positions.count * seq_length_;
  if (documents_.eod_mask_loss) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(seq_length_ + 1));
    for (std::int64_t i = 0; i < positions.count; ++i) {
      sample(positions.first + i, tokens);
      targets -= std::count(tokens.begin(), tokens.end() - 1, documents_.end_token);
    }
  }
  return {.targets = static_cast<double>(targets)};
}

std::shared_ptr<const EpochOrder> GptSamples::epoch_order(std::int64_t epoch) const {
  return orders_.get(epoch, [&] { return EpochOrder(*dataset_, part_, seq_length_, seed_, epoch); });
}

}  // namespace teratron
