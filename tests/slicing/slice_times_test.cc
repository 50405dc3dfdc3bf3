// What a profile of unlike stages says about slices.
#include "slicing/cost/slice_times.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/philox.h"
#include "pipeline/timing/simulate.h"
#include "pipeline/token_slices.h"

namespace teratron::slicing {
namespace {

using Lengths = std::vector<std::int64_t>;
using pipeline::ScheduleKind;

CostModel random_model(RandomSequence& random) {
  CostModel model{.lengths = {16, 256, 1024}};
  const double floor = random.uniform(), rate = 0.01 * random.uniform(), attention = 1e-5 * random.uniform();
  for (const std::int64_t length : model.lengths) {
    const auto l = static_cast<double>(length);
    model.without_context.push_back(floor + rate * l + attention * l * l / 2 + 0.01);
  }
  model.context = {0.1 * random.uniform(), 0, 1e-4 * random.uniform(), attention};
  return model;
}

Profile random_profile(RandomSequence& random, int stages) {
  Profile profile;
  for (int stage = 0; stage < stages; ++stage) {
    profile.stages.push_back({.forward = random_model(random), .backward = random_model(random)});
  }
  profile.key.stages = stages;
  profile.transfer = {.fixed = 0.1 * random.uniform(), .per_token = 1e-4 * random.uniform()};
  return profile;
}

pipeline::Schedule schedule_of(ScheduleKind kind, int stages, int micro_batches, const Lengths& lengths) {
  return pipeline::make_schedule(
      kind, {.stages = stages, .micro_batches = micro_batches, .slices = static_cast<int>(lengths.size())});
}

TEST(SliceTimes, AreThoseOfEachStageWithTheContextOfEachSlice) {
  RandomSequence random(RandomStream{.seed = 1});
  const Profile profile = random_profile(random, 3);
  const Lengths lengths = {500, 300, 224};
  const pipeline::Costs costs = slice_costs(profile, schedule_of(ScheduleKind::kTeraPipe, 3, 2, lengths), lengths);
  for (std::size_t stage = 0; stage < 3; ++stage) {
    EXPECT_EQ(costs.passes[stage][2].forward, profile.stages[stage].forward.milliseconds(224, 800));
    EXPECT_EQ(costs.passes[stage][1].backward, profile.stages[stage].backward.milliseconds(300, 500));
  }
  EXPECT_EQ(costs.transfers[1], profile.transfer.fixed + 300 * profile.transfer.per_token);
}

TEST(SliceTimes, OfMoreStagesThanWereMeasuredAreThoseOfTheNearestPlace) {
  RandomSequence random(RandomStream{.seed = 2});
  const Profile profile = random_profile(random, 2);
  const Lengths whole = {1024};
  const pipeline::Costs costs = slice_costs(profile, schedule_of(ScheduleKind::kGpipe, 4, 1, whole), whole);
  const std::size_t measured[] = {0, 0, 1, 1};
  for (std::size_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(costs.passes[stage][0].forward, profile.stages[measured[stage]].forward.milliseconds(1024, 0));
  }
}

// Iterations of a profile as they would be measured at this pace.
Profile at_pace(Profile profile, const Pace& pace) {
  profile.pace = pace;
  for (MeasuredIteration& iteration : profile.iterations) {
    iteration.pipeline = predicted_milliseconds(profile, iteration);
  }
  profile.pace = {};
  return profile;
}

TEST(SliceTimes, ThePaceIsFoundFromIterationsThoughOneInSevenWasDisturbed) {
  RandomSequence random(RandomStream{.seed = 5});
  for (int trial = 0; trial < 20; ++trial) {
    Profile profile = random_profile(random, 2 + trial % 3);
    for (const Lengths& slices : {Lengths{1024}, Lengths{768, 256}, Lengths{512, 512}, pipeline::even_slices(1024, 4),
                                  pipeline::even_slices(1024, 8), pipeline::even_slices(1024, 16)}) {
      profile.iterations.push_back({.slices = slices});
    }
    profile.iterations.push_back({.slices = {512, 512}, .micro_batches = 4});
    profile.iterations.push_back({.slices = {300, 724}, .held_out = true});
    const Pace pace{.alone = 0.8 + random.uniform(), .together = 0.8 + random.uniform()};
    Profile measured = at_pace(profile, pace);
    measured.iterations[random.below(7)].pipeline *= 1.3;
    measured.iterations.back().pipeline *= 3;
    const Pace found = pace_of(measured);
    ASSERT_NEAR(found.alone, pace.alone, 1e-9) << trial;
    ASSERT_NEAR(found.together, pace.together, 1e-9) << trial;
  }
}

TEST(SliceTimes, OfOneStageHaveOnePace) {
  RandomSequence random(RandomStream{.seed = 6});
  Profile profile = random_profile(random, 1);
  profile.iterations = {{.slices = {1024}}, {.slices = {512, 512}}};
  const Pace found = pace_of(at_pace(profile, {.alone = 1, .together = 1.5}));
  EXPECT_NEAR(found.alone, 1.5, 1e-9);
  EXPECT_NEAR(found.together, 1.5, 1e-9);
}

TEST(SliceTimes, SimulatedAtThePaceComeToWhatIsPredicted) {
  RandomSequence random(RandomStream{.seed = 7});
  Profile profile = random_profile(random, 3);
  profile.pace = {.alone = 1.1, .together = 1.4};
  const Lengths lengths = {500, 300, 224};
  const pipeline::Schedule schedule = schedule_of(ScheduleKind::kSeq1F1B, 3, 2, lengths);
  const double simulated = pipeline::simulate(schedule, slice_costs(profile, schedule, lengths)).iteration;
  EXPECT_NEAR(simulated, pipeline_milliseconds(profile, schedule, lengths), 1e-9 * simulated);
  profile.pace = {};
  const double undisturbed = pipeline_milliseconds(profile, schedule, lengths);
  EXPECT_GT(simulated, 1.1 * undisturbed);
  EXPECT_LT(simulated, 1.4 * undisturbed);
}

TEST(SliceTimes, TheBestSlicesAreNoSlowerThanEvenOrFallingOnes) {
  RandomSequence random(RandomStream{.seed = 3});
  for (int trial = 0; trial < 8; ++trial) {
    const int stages = 2 + static_cast<int>(random.below(3)), micro_batches = 1 + static_cast<int>(random.below(3));
    const Profile profile = random_profile(random, stages);
    for (const ScheduleKind kind : {ScheduleKind::kTeraPipe, ScheduleKind::kSeq1F1B}) {
      const auto time_of = [&](const Lengths& lengths) {
        return pipeline_milliseconds(profile, schedule_of(kind, stages, micro_batches, lengths), lengths);
      };
      const Lengths best = best_slice_lengths(profile, 1024, kind, stages, micro_batches);
      ASSERT_EQ(std::accumulate(best.begin(), best.end(), std::int64_t{0}), 1024);
      // Candidates were compared over no more micro-batches than twice the stages, as here.
      for (int count = 1; count <= 64; count *= 2) {
        ASSERT_LE(time_of(best), time_of(pipeline::even_slices(1024, count)) * (1 + 1e-9)) << count;
      }
      ASSERT_LE(time_of(best), time_of({400, 300, 200, 124}) * (1 + 1e-9));
    }
  }
}

TEST(SliceTimes, TheBestSlicesCanBeSharedOutWhereRanksShareRows) {
  RandomSequence random(RandomStream{.seed = 4});
  Profile profile = random_profile(random, 2);
  profile.key.sequence_parallel = 1;
  profile.key.tensor_parallel = 3;
  for (const std::int64_t tokens : {1023, 300, 9}) {
    for (const std::int64_t length : best_slice_lengths(profile, tokens, ScheduleKind::kSeq1F1B, 2, 1)) {
      EXPECT_EQ(length % 3, 0) << tokens;
    }
  }
}

}  // namespace
}  // namespace teratron::slicing
