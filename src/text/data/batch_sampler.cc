#include "data/batch_sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace teratron {
namespace {

void check_batch(const char* flag, std::int64_t value) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;  // keeps products of sizes far from overflow
  if (value < 1 || value > kLimit) throw_user_error("{} {} must be between 1 and {}", flag, value, kLimit);
}

}  // namespace

BatchSampler::BatchSampler(std::int64_t global_batch, std::vector<std::int64_t> micro_batches,
                           std::int64_t data_parallel_rank, std::int64_t data_parallel_size, std::int64_t together)
    : global_batch_(global_batch),
      rank_(data_parallel_rank),
      size_(data_parallel_size),
      together_(together),
      sizes_(std::move(micro_batches)) {
  check(!sizes_.empty(), "BatchSampler: a size of micro-batches");
  check(size_ >= 1 && rank_ >= 0 && rank_ < size_, "BatchSampler: data-parallel rank");
  check_batch("--global-batch-size", global_batch);
  for (const std::int64_t size : sizes_) check_batch("--micro-batch-size", size);
  check(together >= 1 && global_batch % together == 0, "BatchSampler: whole groups");
  for (const std::int64_t size : sizes_) check(size % together == 0, "BatchSampler: whole groups in a micro-batch");
}

std::int64_t BatchSampler::size_of(std::int64_t index) const {
  return sizes_[std::min(static_cast<std::size_t>(index), sizes_.size() - 1)];
}

std::int64_t BatchSampler::before(std::int64_t index) const {
  const std::int64_t listed = std::min(index, std::ssize(sizes_));
  return std::accumulate(sizes_.begin(), sizes_.begin() + listed, std::int64_t{0}) + (index - listed) * sizes_.back();
}

std::int64_t BatchSampler::needed_for(std::int64_t samples) const {
  std::int64_t micro_batches = 0;
  for (const std::int64_t size : sizes_) {
    if (samples <= 0) return micro_batches;
    samples -= size;
    ++micro_batches;
  }
  return micro_batches + (std::max(samples, std::int64_t{0}) + sizes_.back() - 1) / sizes_.back();
}

std::int64_t BatchSampler::largest_micro_batch() const { return std::min(std::ranges::max(sizes_), largest_share()); }

SampleRange BatchSampler::places_by_length(std::int64_t index) const {
  check(index >= 0 && index < micro_batches(), "BatchSampler: no such micro-batch");
  const std::int64_t earlier = before(index), size = size_of(index);  // of each rank, if it has as many
  SampleRange places{.first = 0, .count = std::min(size, share_of(rank_) - earlier)};
  for (std::int64_t rank = 0; rank < size_; ++rank) {
    places.first += std::min(share_of(rank), earlier + (rank < rank_ ? size : 0));
  }
  return places;
}

SampleRange BatchSampler::samples(std::int64_t consumed, std::int64_t index) const {
  check(consumed >= 0 && index >= 0 && index < micro_batches(), "BatchSampler: no such micro-batch");
  const std::int64_t first = share_begin(rank_) + before(index);
  return {consumed + first, std::min(size_of(index), share_begin(rank_ + 1) - first)};
}

}  // namespace teratron
