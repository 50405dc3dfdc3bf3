#include "data/batch_sampler.h"

#include <algorithm>

#include "base/error.h"

namespace teratron {
namespace {

void check_batch(const char* flag, std::int64_t value) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;  // keeps products of sizes far from overflow
  if (value < 1 || value > kLimit) throw_user_error("{} {} must be between 1 and {}", flag, value, kLimit);
}

}  // namespace

BatchSampler::BatchSampler(std::int64_t global_batch, std::int64_t micro_batch, std::int64_t data_parallel_rank,
                           std::int64_t data_parallel_size)
    : global_batch_(global_batch), micro_batch_(micro_batch), rank_(data_parallel_rank), size_(data_parallel_size) {
  check(size_ >= 1 && rank_ >= 0 && rank_ < size_, "BatchSampler: data-parallel rank");
  check_batch("--global-batch-size", global_batch);
  check_batch("--micro-batch-size", micro_batch);
  if (global_batch < size_) {
    throw_user_error(
        "--global-batch-size {0} has no sample for some of {1} data-parallel ranks; the least that works is "
        "{1}",
        global_batch, size_);
  }
}

std::int64_t BatchSampler::largest_micro_batch() const { return std::min(micro_batch_, largest_share()); }

SampleRange BatchSampler::places_by_length(std::int64_t index) const {
  check(index >= 0 && index < micro_batches(), "BatchSampler: no such micro-batch");
  const std::int64_t before = index * micro_batch_;  // of each rank, where it has as many
  const auto share = [&](std::int64_t rank) { return share_begin(rank + 1) - share_begin(rank); };
  SampleRange places{.first = 0, .count = std::min(micro_batch_, share(rank_) - before)};
  for (std::int64_t rank = 0; rank < size_; ++rank) {
    places.first += std::min(share(rank), before + (rank < rank_ ? micro_batch_ : 0));
  }
  return places;
}

SampleRange BatchSampler::samples(std::int64_t consumed, std::int64_t index) const {
  check(consumed >= 0 && index >= 0 && index < micro_batches(), "BatchSampler: no such micro-batch");
  const std::int64_t first = share_begin(rank_) + index * micro_batch_;
  return {consumed + first, std::min(micro_batch_, share_begin(rank_ + 1) - first)};
}

}  // namespace teratron
