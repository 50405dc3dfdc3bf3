// The size of the global batch over a run: constant, or ramped up as by Megatron-LM's --rampup-batch-size. A pure
// function of the updates and samples done, so that a resumed run uses the sizes of the uninterrupted one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace teratron {

// The batch has `start` samples at first and grows by `increment` until it reaches the global batch, each time that
// another equal part of `samples` has been consumed.
struct BatchRamp {
  std::int64_t start = 0, increment = 0, samples = 0;
};

// Progress of a resumed run, made with any batch sizes.
struct BatchesDone {
  std::int64_t updates = 0, samples = 0;
};

class BatchSchedule {
 public:
  // Largest number of increments.
  static constexpr std::int64_t kMostIncrements = 1 << 16;

  // A ramp must fit: 1 <= start <= global_batch in at most kMostIncrements whole increments, samples >= 1.
  explicit BatchSchedule(std::int64_t global_batch, const std::optional<BatchRamp>& ramp = std::nullopt,
                         const BatchesDone& done = {});

  // The batch size of the update that follows `update` earlier ones, and the samples consumed by `updates` updates.
  // Neither argument is below BatchesDone::updates.
  std::int64_t batch_size(std::int64_t update) const;
  std::int64_t consumed_after(std::int64_t updates) const;
  std::int64_t largest() const { return stages_.back().size; }
  bool is_constant() const { return stages_.size() == 1; }

 private:
  // Consecutive updates with batches of the same size; the last stage has no end.
  struct Stage {
    std::int64_t first_update, consumed, size;  // consumed: before its first update
  };
  const Stage& stage_of(std::int64_t update) const;

  std::vector<Stage> stages_;
};

}  // namespace teratron
