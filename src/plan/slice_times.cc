#include "plan/slice_times.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "pipeline/simulate.h"
#include "plan/slicer.h"

namespace teratron::plan {
namespace {

// Steps of the grid that slices are cut on: as fine as keeps the slicers quick.
constexpr std::int64_t kSteps = 256, kPairSteps = 64;

std::int64_t granularity_of(std::int64_t tokens, std::int64_t steps) { return (tokens + steps - 1) / steps; }

SlicerOptions options_for(const CostTable& both, int stages, int micro_batches) {
  return {.stages = stages, .micro_batches = micro_batches, .epsilon = 1e-4 * both.of(0, both.intervals())};
}

using Lengths = std::vector<std::int64_t>;

std::vector<Lengths> candidates_for_1f1b(const Profile& profile, std::int64_t tokens, int stages, int micro_batches) {
  const std::int64_t coarse = granularity_of(tokens, kPairSteps), fine = granularity_of(tokens, kSteps);
  const CostTable forward = profile.forward.table(tokens, coarse), backward = profile.backward.table(tokens, coarse);
  const CostTable both = profile.forward.table(tokens, fine).plus(profile.backward.table(tokens, fine));
  std::vector<Lengths> candidates = {
      best_pair_slicing(forward, backward, options_for(both, stages, micro_batches)).lengths};
  for (int quarters = 1; quarters <= 16; quarters *= 2) {
    const int further = std::max(1, (stages - 1) * quarters / 4);
    candidates.push_back(best_slicing(both, options_for(both, 1 + further, micro_batches)).lengths);
  }
  return candidates;
}

double simulated_milliseconds(const Profile& profile, const Lengths& lengths, int stages, int micro_batches) {
  const pipeline::Schedule schedule = pipeline::make_schedule(
      pipeline::ScheduleKind::kSeq1F1B,
      {.stages = stages, .micro_batches = micro_batches, .slices = static_cast<int>(lengths.size())});
  return pipeline::simulate(schedule, pipeline::sliced_costs(schedule, slice_times(profile, lengths).times)).iteration;
}

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
  if (schedule == pipeline::ScheduleKind::kTeraPipe) {
    const std::int64_t granularity = granularity_of(tokens, kSteps);
    const CostTable both = profile.forward.table(tokens, granularity).plus(profile.backward.table(tokens, granularity));
    return best_slicing(both, options_for(both, stages, micro_batches)).lengths;
  }
  check(schedule == pipeline::ScheduleKind::kSeq1F1B, "only terapipe and seq1f1b take slices");
  // A steady state shows after as many micro-batches as there are stages; more of them only take longer.
  const int enough = std::min(micro_batches, 2 * stages);
  Lengths best;
  double least = std::numeric_limits<double>::infinity();
  for (Lengths& lengths : candidates_for_1f1b(profile, tokens, stages, micro_batches)) {
    const double time = simulated_milliseconds(profile, lengths, stages, enough);
    if (time >= least) continue;
    least = time;
    best = std::move(lengths);
  }
  return best;
}

}  // namespace teratron::plan
