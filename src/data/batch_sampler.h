// Which samples a rank reads for a step. A step consumes the global batch at positions [consumed, consumed + global
// batch) of the run; data-parallel ranks and micro-batches only regroup them, so the layout never changes the batch.
#pragma once

#include <cstdint>

namespace teratron {

// Consecutive positions of the run.
struct SampleRange {
  std::int64_t first = 0, count = 0;
  bool operator==(const SampleRange&) const = default;
};

// Rank r of R takes the r-th of R equal runs of the global batch, in micro-batches one after the other: rank by rank
// and micro-batch by micro-batch, the positions are consumed, consumed + 1, ... in every layout. A batch size that
// ramps up needs only a new sampler for the next step, since all that a step hands on is the samples consumed.
class BatchSampler {
 public:
  // UserError: sizes below 1 (or absurd), or a global batch that is no multiple of micro_batch * data_parallel_size
  // (names the nearest that are).
  BatchSampler(std::int64_t global_batch, std::int64_t micro_batch, std::int64_t data_parallel_rank = 0,
               std::int64_t data_parallel_size = 1);

  std::int64_t global_batch() const { return global_batch_; }
  std::int64_t micro_batch() const { return micro_batch_; }
  // Micro-batches that each rank runs in a step.
  std::int64_t micro_batches() const { return global_batch_ / (micro_batch_ * size_); }

  // The positions of micro-batch `index` of this rank in the step that starts after `consumed` samples.
  SampleRange samples(std::int64_t consumed, std::int64_t index) const;

 private:
  std::int64_t global_batch_, micro_batch_, rank_, size_;
};

}  // namespace teratron
