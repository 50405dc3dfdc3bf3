#include "data/batch_sampler.h"

#include "base/error.h"

namespace teratron {
namespace {

void check_batch(const char* flag, std::int64_t value) {
  constexpr std::int64_t kLimit = 1 << 30;  // keeps products of sizes far from overflow
  if (value < 1 || value > kLimit) throw_user_error("{} {} must be between 1 and {}", flag, value, kLimit);
}

}  // namespace

BatchSampler::BatchSampler(std::int64_t global_batch, std::int64_t micro_batch, std::int64_t data_parallel_rank,
                           std::int64_t data_parallel_size)
    : global_batch_(global_batch), micro_batch_(micro_batch), rank_(data_parallel_rank), size_(data_parallel_size) {
  check(size_ >= 1 && rank_ >= 0 && rank_ < size_, "BatchSampler: data-parallel rank");
  check_batch("--global-batch-size", global_batch);
  check_batch("--micro-batch-size", micro_batch);
  if (const std::int64_t unit = micro_batch * size_; global_batch % unit != 0) {
    const std::int64_t below = global_batch / unit * unit;
    throw_user_error(
        "--global-batch-size {} is not a multiple of --micro-batch-size {} times {} data-parallel ranks; "
        "nearest that are: {}{}",
        global_batch, micro_batch, size_, below > 0 ? fmt::format("{}, ", below) : "", below + unit);
  }
}

SampleRange BatchSampler::samples(std::int64_t consumed, std::int64_t index) const {
  check(consumed >= 0 && index >= 0 && index < micro_batches(), "BatchSampler: no such micro-batch");
  return {consumed + (rank_ * micro_batches() + index) * micro_batch_, micro_batch_};
}

}  // namespace teratron
