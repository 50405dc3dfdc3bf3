// The samples that a rank reads for a step. A step consumes the global batch at positions [consumed, consumed + global
// batch) of the run. Data-parallel ranks and micro-batches only regroup them, so the layout never changes the batch.
#pragma once

#include <cstdint>
#include <vector>

namespace teratron {

// Consecutive positions of the run.
struct SampleRange {
  std::int64_t first = 0, count = 0;
  bool operator==(const SampleRange&) const = default;
};

// Rank r of R takes the samples [G r / R, G (r + 1) / R) of a global batch of G; shares differ by at most one sample.
// It takes them in micro-batches of the given sizes, of which the last may be short. Rank by rank and micro-batch by
// micro-batch the positions are consumed, consumed + 1, ... in every layout. Ranks may run different numbers of
// micro-batches; with fewer samples than ranks some run none. Samples may form groups, as the sequences of a task's
// example do: all sizes are then multiples of the group's size, and all numbers above count groups. A sampler is for
// one size of the global batch; making one costs nothing.
class BatchSampler {
 public:
  // micro_batches: samples of each; the last size repeats. `together`: samples of a group. UserError: sizes below 1 or
  // too large.
  BatchSampler(std::int64_t global_batch, std::vector<std::int64_t> micro_batches, std::int64_t data_parallel_rank = 0,
               std::int64_t data_parallel_size = 1, std::int64_t together = 1);
  BatchSampler(std::int64_t global_batch, std::int64_t micro_batch, std::int64_t data_parallel_rank = 0,
               std::int64_t data_parallel_size = 1)
      : BatchSampler(global_batch, std::vector{micro_batch}, data_parallel_rank, data_parallel_size) {}

  std::int64_t global_batch() const { return global_batch_; }
  // The largest number of samples of a micro-batch, on any rank.
  std::int64_t largest_micro_batch() const;
  // The largest number of micro-batches that any rank runs in a step.
  std::int64_t most_micro_batches() const { return needed_for(largest_share()); }
  // Micro-batches that this rank runs in a step.
  std::int64_t micro_batches() const { return needed_for(share_of(rank_)); }

  // For micro-batches of similar lengths: the indices of micro-batch `index` of this rank in the step's samples ordered
  // by length. Micro-batches are runs of that order, dealt to the ranks in turn, so that the ranks' have about equal
  // lengths.
  SampleRange places_by_length(std::int64_t index) const;

  // The positions of micro-batch `index` of this rank in the step that starts after `consumed` samples.
  SampleRange samples(std::int64_t consumed, std::int64_t index) const;

 private:
  std::int64_t share_begin(std::int64_t rank) const { return global_batch_ / together_ * rank / size_ * together_; }
  std::int64_t share_of(std::int64_t rank) const { return share_begin(rank + 1) - share_begin(rank); }
  std::int64_t largest_share() const { return (global_batch_ / together_ + size_ - 1) / size_ * together_; }
  // Samples of micro-batch `index`, and of all before it, in a share with that many.
  std::int64_t size_of(std::int64_t index) const;
  std::int64_t before(std::int64_t index) const;
  std::int64_t needed_for(std::int64_t samples) const;  // micro-batches

  std::int64_t global_batch_, rank_, size_, together_;
  std::vector<std::int64_t> sizes_;  // of micro-batches; the last size repeats
};

}  // namespace teratron
