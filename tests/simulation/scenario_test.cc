// Scenarios whose micro-batches have cuts of their own, or whose stages share the vocabulary, beside those whose
// micro-batches are alike, and beside the sum of the work.
#include "simulation/scenario.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "base/error.h"

namespace teratron::testing {
namespace {

using namespace simulation;
using pipeline::ScheduleKind;
using ::testing::HasSubstr;

const std::string kProfile = TERATRON_SOURCE_DIR "/docs/figures/profile.json";  // of 2048 tokens

std::string message_of(const Scenario& scenario) {
  try {
    simulate(scenario);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Scenario, MicroBatchesThatAreAllCutAlikeAreOneCutOfAll) {
  for (const ScheduleKind kind : {ScheduleKind::kTeraPipe, ScheduleKind::kSeq1F1B}) {
    for (const std::string& profile : {std::string(), kProfile}) {
      for (const std::int64_t micro_batches : {1, 2, 5}) {
        Scenario scenario{.schedule = kind,
                          .stages = 3,
                          .micro_batches = micro_batches,
                          .slices = "1280,768",
                          .forward = 3,
                          .backward = 5,
                          .transfer = 0.25,
                          .profile = profile};
        const ScenarioResult of_all = simulate(scenario);
        scenario.micro_batches = 7;  // the cuts say it
        scenario.slices = fmt::format(
            "{}", fmt::join(std::vector<std::string>(static_cast<std::size_t>(micro_batches), "1x1280,768"), "+"));
        const ScenarioResult of_each = simulate(scenario);
        EXPECT_NEAR(of_each.simulation.iteration, of_all.simulation.iteration, 1e-9) << scenario.slices;
        EXPECT_NEAR(of_each.simulation.bubble_share(), of_all.simulation.bubble_share(), 1e-9);
        EXPECT_NEAR(of_each.work, of_all.work, 1e-9);
        EXPECT_EQ(of_each.cuts.size(), static_cast<std::size_t>(micro_batches));
        EXPECT_FALSE(of_each.closed_form);
        for (std::size_t stage = 0; stage < 3; ++stage) {
          EXPECT_EQ(of_each.peaks[stage].slices, of_all.peaks[stage].slices);
          EXPECT_NEAR(of_each.peaks[stage].micro_batches, of_all.peaks[stage].micro_batches, 1e-9);
        }
      }
    }
  }
}

TEST(Scenario, AStageWorksAsLongAsItsSequencesTakeHoweverTheyAreCut) {
  for (const bool deferred : {false, true}) {
    for (const int stages : {1, 4}) {
      const Scenario scenario{.schedule = ScheduleKind::kSeq1F1B,
                              .stages = stages,
                              .slices = "4x512,256,256+1x1024+2x1000,24",
                              .forward = 3,
                              .backward = 5,
                              .defer_weight_gradients = deferred};
      const ScenarioResult result = simulate(scenario);
      const double work = (1 + 0.25 + 0.5) * (3 + 5);  // the times are of the first micro-batch
      for (const double busy : result.simulation.busy) EXPECT_NEAR(busy, work, 1e-9);
      if (stages == 1) {
        EXPECT_NEAR(result.simulation.iteration, work, 1e-9);
      }
      EXPECT_GE(result.simulation.iteration, work - 1e-9);
    }
  }
}

TEST(Scenario, AHeadThatStagesShareIsWorkOfEach) {
  for (const auto& [kind, slices, virtual_stages] : {std::tuple{ScheduleKind::k1F1B, "1", 1},
                                                     {ScheduleKind::kSeq1F1B, "768,256", 1},
                                                     {ScheduleKind::kInterleaved, "1", 2}}) {
    Scenario scenario{.schedule = kind,
                      .stages = 4,
                      .micro_batches = 8,
                      .virtual_stages = virtual_stages,
                      .slices = slices,
                      .forward = 3,
                      .backward = 5,
                      .vocabulary_parallel = true,
                      .head = 0.5};
    const ScenarioResult result = simulate(scenario);
    for (const double busy : result.simulation.busy) EXPECT_NEAR(busy, 8 * (3 + 5 + 0.5), 1e-9) << slices;
    EXPECT_FALSE(result.closed_form);
    scenario.head = 0;
    EXPECT_LT(simulate(scenario).simulation.iteration, result.simulation.iteration);
  }
}

TEST(Scenario, CutsOfOtherLengthsAreRefused) {
  EXPECT_THAT(message_of({.schedule = ScheduleKind::kSeq1F1B, .slices = "1x512,512+1x512"}),
              HasSubstr("add up to 512 tokens, not to the 1024 of a sequence"));
  EXPECT_THAT(message_of({.schedule = ScheduleKind::kSeq1F1B, .slices = "1x512,512", .profile = kProfile}),
              HasSubstr("add up to 1024 tokens, not to the 2048 of a sequence"));
  EXPECT_THAT(message_of({.schedule = ScheduleKind::kSeq1F1B, .slices = "1x512+2x512"}),
              HasSubstr("put the one with the most first"));
  EXPECT_THAT(message_of({.schedule = ScheduleKind::kSeq1F1B, .slices = "704,688", .tokens = 1000}),
              HasSubstr("add up to 1392 tokens, not to the 1000 of a sequence"));
  EXPECT_THAT(message_of({.schedule = ScheduleKind::kSeq1F1B, .slices = "2x512,512+1x1024", .tokens = 1000}),
              HasSubstr("add up to 1024 tokens, not to the 1000 of a sequence"));
  EXPECT_EQ(message_of({.schedule = ScheduleKind::kSeq1F1B, .slices = "704,688", .tokens = 1392}), "");
}

TEST(Scenario, FlagsThatContradictOneAnotherAreRefused) {
  Scenario scenario{.schedule = ScheduleKind::kSeq1F1B,
                    .micro_batches = 5,
                    .slices = "2x512,512+1x1024",
                    .gives_micro_batches = true};
  EXPECT_THAT(message_of(scenario),
              HasSubstr("--micro-batches is 5, but --slices 2x512,512+1x1024 has 2 micro-batches"));
  scenario.micro_batches = 2;
  EXPECT_EQ(message_of(scenario), "");
  scenario = {.profile = kProfile, .gives_times = true};
  EXPECT_THAT(scenario.faults().texts(), ::testing::ElementsAre(HasSubstr("leave out --forward-ms and --backward-ms")));
}

// Without that, cuts of millions of slices would be simulated first.
TEST(Scenario, TooManyActionsAreRefusedBeforeSlicesAreChosen) {
  EXPECT_THAT(message_of({.schedule = ScheduleKind::kTeraPipe,
                          .stages = 200,
                          .micro_batches = 8000,
                          .slices = "auto",
                          .profile = kProfile}),
              HasSubstr("this schedule has 4800000 actions, and 4000000 are the most"));
  const ScenarioResult most = simulate({.schedule = ScheduleKind::kTeraPipe,
                                        .stages = 4,
                                        .micro_batches = 100'000,
                                        .slices = "auto",
                                        .profile = kProfile});
  EXPECT_LE(most.lengths.size(), 3U) << "more slices make too many actions";
}

}  // namespace
}  // namespace teratron::testing
