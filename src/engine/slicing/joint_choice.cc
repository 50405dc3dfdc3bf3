#include "slicing/joint_choice.h"

#include <algorithm>

#include "base/error.h"
#include "pipeline/token_slices.h"
#include "slicing/cost/slice_times.h"
#include "slicing/slicer.h"

namespace teratron::slicing {
namespace {

using Cuts = std::vector<pipeline::MicroBatchCut>;

constexpr std::int64_t kJointSteps = 64;  // of the grid that slices are cut on: programmes are solved for every size
constexpr std::size_t kWays = 5;          // that are returned

class JointChoice {
 public:
  JointChoice(Profiles profiles, std::int64_t tokens, pipeline::ScheduleKind kind, int stages, std::int64_t sequences)
      : profiles_(profiles), tokens_(tokens), kind_(kind), stages_(stages), sequences_(sequences) {}

  std::vector<Cuts> likely() {
    unequal();
    for (const Profile& profile : profiles_) equal(profile);
    std::ranges::stable_sort(tried_, {}, &Tried::milliseconds);
    std::vector<Cuts> ways;
    bool has_even = false;
    for (const Tried& tried : tried_) {
      const bool is_last = ways.size() + 1 == kWays;
      if (ways.size() == kWays || (is_last && !has_even && !tried.is_even)) continue;
      has_even = has_even || tried.is_even;
      ways.push_back(tried.cuts);
    }
    return ways;
  }

 private:
  struct Tried {
    double milliseconds = 0;
    Cuts cuts;
    bool is_even = false;
  };

  // What a slice takes in the slowest stage, of micro-batches of every size.
  std::vector<CostTable> tables() const {
    const std::int64_t granularity = slice_grid(tokens_, profiles_.front().key.unit(), kJointSteps);
    const std::int64_t most = std::min(sequences_, profiles_.back().key.sequences);
    std::vector<CostTable> tables;
    for (std::int64_t size = 1; size <= most; ++size) {
      tables.emplace_back(tokens_, granularity, [&](std::int64_t length, std::int64_t context) {
        double slowest = 0;
        for (std::size_t stage = 0; stage < profiles_.front().stages.size(); ++stage) {
          slowest = std::max(slowest, slice_milliseconds(profiles_, stage, size, length, context));
        }
        return slowest + profiles_.front().transfer.of(length * size);
      });
    }
    return tables;
  }

  // The fewer stages Algorithm 1 reckons with, the longer its slices.
  void unequal() {
    const std::vector<CostTable> costs = tables();
    const double epsilon = 1e-4 * costs.front().of(0, costs.front().intervals());
    for (int quarters = 1; quarters <= 4; quarters *= 2) {
      const int further = std::max(1, (stages_ - 1) * quarters / 4);
      const JointSlicing best =
          best_joint_slicing(costs, {.stages = 1 + further, .epsilon = epsilon}, static_cast<std::size_t>(sequences_));
      Cuts cuts;
      for (const JointSlicing::Part& part : best.parts) cuts.push_back({part.sequences, part.lengths});
      consider(std::move(cuts), false);
    }
  }

  void equal(const Profile& profile) {
    const std::int64_t size = std::min(profile.key.sequences, sequences_);
    const auto micro_batches = static_cast<int>((sequences_ + size - 1) / size);
    for (std::vector<std::int64_t>& lengths : likely_slicings(profile, tokens_, kind_, stages_, micro_batches)) {
      const auto [shortest, longest] = std::ranges::minmax(lengths);
      const bool is_even = longest - shortest <= longest / 8;  // but for the grid
      Cuts cuts;
      for (std::int64_t left = sequences_; left > 0; left -= size) cuts.push_back({std::min(size, left), lengths});
      consider(std::move(cuts), is_even);
    }
  }

  void consider(Cuts cuts, bool is_even) {
    std::int64_t sum = 0;
    for (const pipeline::MicroBatchCut& cut : cuts) sum += cut.sequences;
    check_equal(sum, sequences_, "sequences of all micro-batches");
    if (std::ranges::find(tried_, cuts, &Tried::cuts) != tried_.end()) return;
    pipeline::ScheduleSize size{.stages = stages_, .micro_batches = static_cast<int>(cuts.size())};
    size.set_slices(pipeline::TokenSlices{.cuts = cuts}.slices_each());
    const double time = pipeline_milliseconds(profiles_, pipeline::make_schedule(kind_, size), cuts);
    tried_.push_back({time, std::move(cuts), is_even});
  }

  Profiles profiles_;
  const std::int64_t tokens_;
  const pipeline::ScheduleKind kind_;
  const int stages_;
  const std::int64_t sequences_;
  std::vector<Tried> tried_;
};

}  // namespace

std::vector<std::int64_t> sizes_to_measure(std::int64_t most) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size < most; size *= 2) sizes.push_back(size);
  sizes.push_back(most);
  return sizes;
}

std::vector<Cuts> likely_cuts(Profiles profiles, std::int64_t tokens, pipeline::ScheduleKind schedule, int stages,
                              std::int64_t sequences) {
  check(!profiles.empty() && sequences >= 1, "a batch has sequences, and its costs are known");
  return JointChoice(profiles, tokens, schedule, stages, sequences).likely();
}

}  // namespace teratron::slicing
