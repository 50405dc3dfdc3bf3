#include "data/batch_schedule.h"

#include <algorithm>

#include "base/error.h"

namespace teratron {
namespace {

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit; }

}  // namespace

BatchSchedule::BatchSchedule(std::int64_t global_batch, const std::optional<BatchRamp>& ramp, const BatchesDone& done) {
  check(global_batch >= 1, "BatchSchedule: a batch of at least one sample");
  std::int64_t update = done.updates, consumed = done.samples;
  if (ramp && ramp->start < global_batch) {
    check(ramp->start >= 1 && ramp->increment >= 1 && ramp->samples >= 1, "BatchSchedule: a ramp of positive numbers");
    check((global_batch - ramp->start) % ramp->increment == 0, "BatchSchedule: whole increments");
    const std::int64_t increments = (global_batch - ramp->start) / ramp->increment;
    check(increments <= kMostIncrements, "BatchSchedule: number of increments");
    for (std::int64_t i = 0; i < increments; ++i) {
      // Batch i is used while floor(consumed * increments / samples) == i.
      const std::int64_t end = rounded_up((i + 1) * ramp->samples, increments);
      if (consumed >= end) continue;  // one step has run through a whole part
      const std::int64_t size = ramp->start + i * ramp->increment;
      stages_.push_back({update, consumed, size});
      const std::int64_t updates = rounded_up(end - consumed, size);
      update += updates;
      consumed += updates * size;
    }
  }
  stages_.push_back({update, consumed, global_batch});
}

const BatchSchedule::Stage& BatchSchedule::stage_of(std::int64_t update) const {
  check(update >= stages_.front().first_update, "BatchSchedule: updates");
  const auto after =
      std::upper_bound(stages_.begin(), stages_.end(), update,
                       [](std::int64_t value, const Stage& stage) { return value < stage.first_update; });
  return *std::prev(after);
}

std::int64_t BatchSchedule::batch_size(std::int64_t update) const { return stage_of(update).size; }

std::int64_t BatchSchedule::consumed_after(std::int64_t updates) const {
  const Stage& stage = stage_of(updates);
  return stage.consumed + (updates - stage.first_update) * stage.size;
}

}  // namespace teratron
