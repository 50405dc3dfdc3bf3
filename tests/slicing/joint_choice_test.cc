// Micro-batches and slices chosen together, by what profiles of several sizes say.
#include "slicing/joint_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/philox.h"
#include "pipeline/token_slices.h"
#include "slicing/cost/slice_times.h"

namespace teratron::slicing {
namespace {

using ::testing::ElementsAre;
using Cuts = std::vector<pipeline::MicroBatchCut>;

constexpr std::int64_t kTokens = 256;

// Costs of micro-batches of each size: a floor that does not grow with the sequences, a rate that does, and attention.
std::vector<Profile> profiles_of(RandomSequence& random, int stages, std::span<const std::int64_t> sizes) {
  const double floor = 2 * random.uniform(), rate = 0.02 + 0.05 * random.uniform(), attention = 1e-4 * random.uniform();
  std::vector<Profile> profiles;
  for (const std::int64_t size : sizes) {
    Profile profile;
    profile.key.sequences = size;
    profile.key.tokens = kTokens;
    profile.key.stages = stages;
    const auto sequences = static_cast<double>(size);
    CostModel model;
    for (const std::int64_t length : {1, 8, 32, 64, 128, 256}) {
      const auto l = static_cast<double>(length);
      model.lengths.push_back(length);
      model.without_context.push_back(floor + sequences * (rate * l + attention * l * l / 2));
    }
    model.context = {0, 0, 0, sequences * attention};
    for (int stage = 0; stage < stages; ++stage) {
      profile.stages.push_back({.forward = model, .backward = model.times(2)});
    }
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

double time_of(Profiles profiles, pipeline::ScheduleKind kind, int stages, const Cuts& cuts) {
  pipeline::ScheduleSize size{.stages = stages, .micro_batches = static_cast<int>(cuts.size())};
  size.set_slices(pipeline::TokenSlices{.cuts = cuts}.slices_each());
  return pipeline_milliseconds(profiles, pipeline::make_schedule(kind, size), cuts);
}

std::vector<std::int64_t> even_on_grid(int count) {
  const std::int64_t grid = slice_grid(kTokens, 1, kTokens);
  std::vector<std::int64_t> lengths = pipeline::even_slices(kTokens / grid, count);
  for (std::int64_t& length : lengths) length *= grid;
  return lengths;
}

TEST(JointChoice, IsNoSlowerThanAnyEvenCutOfAnyMeasuredSizeAndMakesUpTheBatch) {
  RandomSequence random(RandomStream{.seed = 5});
  int unequal = 0;
  for (int trial = 0; trial < 25; ++trial) {
    const int stages = 2 + static_cast<int>(random.below(4));
    const std::int64_t most = 1 + static_cast<std::int64_t>(random.below(4)),
                       sequences = most + static_cast<std::int64_t>(random.below(5));
    const std::vector<std::int64_t> sizes = sizes_to_measure(most);
    const std::vector<Profile> profiles = profiles_of(random, stages, sizes);
    const auto kind = random.below(2) == 0 ? pipeline::ScheduleKind::kTeraPipe : pipeline::ScheduleKind::kSeq1F1B;
    const std::vector<Cuts> ways = likely_cuts(profiles, kTokens, kind, stages, sequences);
    ASSERT_FALSE(ways.empty());
    ASSERT_LE(ways.size(), 5U);
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const Cuts& cuts = ways[i];
      std::int64_t sum = 0;
      for (const pipeline::MicroBatchCut& cut : cuts) {
        ASSERT_EQ(cut.tokens(), kTokens);
        ASSERT_LE(cut.sequences, std::min(most, cuts.front().sequences));
        sum += cut.sequences;
      }
      ASSERT_EQ(sum, sequences);
      ASSERT_EQ(std::ranges::count(ways, cuts), 1);
      ASSERT_LE(time_of(profiles, kind, stages, ways[0]), time_of(profiles, kind, stages, cuts));
    }
    EXPECT_TRUE(std::ranges::any_of(ways, [](const Cuts& cuts) {
      const auto [shortest, longest] = std::ranges::minmax(cuts.front().slice_tokens);
      return longest - shortest <= longest / 8;
    }));
    unequal += ways.front().front().sequences > ways.front().back().sequences ? 1 : 0;
    const double best = time_of(profiles, kind, stages, ways.front());
    for (const std::int64_t size : sizes) {
      for (int count = 1; count <= 16; ++count) {
        Cuts even;  // as even as the grid of the choice's boundaries is fine
        for (std::int64_t left = sequences; left > 0; left -= size) {
          even.push_back({std::min(size, left), even_on_grid(count)});
        }
        ASSERT_LE(best, 1.001 * time_of(profiles, kind, stages, even)) << size << " at a time, " << count << " slices";
      }
    }
  }
  EXPECT_GT(unequal, 0);
}

TEST(JointChoice, TimesBetweenMeasuredSizesAreStraightLinesAndBeyondThemProportional) {
  RandomSequence random(RandomStream{.seed = 6});
  const std::vector<std::int64_t> sizes = {2, 4};
  const std::vector<Profile> profiles = profiles_of(random, 2, sizes);
  const auto time = [&](std::int64_t sequences) { return slice_milliseconds(profiles, 1, sequences, 100, 60); };
  const auto measured = [&](std::size_t profile) {
    const StageCosts& stage = profiles[profile].stages[1];
    return stage.forward.milliseconds(100, 60) + stage.backward.milliseconds(100, 60);
  };
  EXPECT_DOUBLE_EQ(time(2), measured(0));
  EXPECT_DOUBLE_EQ(time(4), measured(1));
  EXPECT_NEAR(time(3), (measured(0) + measured(1)) / 2, 1e-12 * time(3));
  EXPECT_NEAR(time(1), measured(0) / 2, 1e-12 * time(1));
  EXPECT_NEAR(time(8), 2 * measured(1), 1e-12 * time(8));
}

TEST(JointChoice, SizesDoubleUpToTheMost) {
  EXPECT_THAT(sizes_to_measure(1), ElementsAre(1));
  EXPECT_THAT(sizes_to_measure(4), ElementsAre(1, 2, 4));
  EXPECT_THAT(sizes_to_measure(6), ElementsAre(1, 2, 4, 6));
}

}  // namespace
}  // namespace teratron::slicing
