#include "plan/slice_times.h"

#include "plan/slicer.h"

namespace teratron::plan {
namespace {

// Steps of the grid that slices are cut on: as fine as keeps the slicers quick.
constexpr std::int64_t kSteps = 256, kPairSteps = 64;

}  // namespace

SliceTimes slice_times(const Profile& profile, std::span<const std::int64_t> lengths) {
  SliceTimes slices;
  std::int64_t context = 0;
  for (const std::int64_t length : lengths) {
    slices.lengths.push_back(length);
    slices.times.push_back(pipeline::PassTimes::even_parts(profile.forward.milliseconds(length, context),
                                                           profile.backward.milliseconds(length, context)));
    context += length;
  }
  return slices;
}

std::vector<std::int64_t> best_slice_lengths(const Profile& profile, std::int64_t tokens,
                                             pipeline::ScheduleKind schedule, int stages, int micro_batches) {
  const bool pairs = schedule == pipeline::ScheduleKind::kSeq1F1B;
  const std::int64_t steps = pairs ? kPairSteps : kSteps, granularity = (tokens + steps - 1) / steps;
  const CostTable forward = profile.forward.table(tokens, granularity);
  const CostTable backward = profile.backward.table(tokens, granularity);
  const CostTable both = forward.plus(backward);
  const SlicerOptions options{
      .stages = stages, .micro_batches = micro_batches, .epsilon = 1e-4 * both.of(0, both.intervals())};
  return pairs ? best_pair_slicing(forward, backward, options).lengths : best_slicing(both, options).lengths;
}

}  // namespace teratron::plan
