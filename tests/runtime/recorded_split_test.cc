// Which documents a run holds out: what the flags say and what a checkpoint remembers.
#include "runtime/recorded_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr SplitRule kDefault{.seed = kDefaultSplitSeed}, kSeven{.seed = 7};

TEST(SplitSettings, AStateRemembersItsRule) {
  for (const SplitRule& rule : {kFileOrder, kDefault, kSeven}) {
    TrainingState state{.iteration = 1};
    record_split(rule, state);
    EXPECT_EQ(recorded_split(state), rule);
  }
}

TEST(SplitSettings, AStateWithoutARecordIsInFileOrderAndOneWithoutUpdatesHasNoRule) {
  EXPECT_EQ(recorded_split({.iteration = 1, .counters = {{"skipped_iterations", 0}}}), kFileOrder);
  EXPECT_EQ(recorded_split({.iteration = 0}), std::nullopt);
}

TEST(SplitSettings, AnEvaluationGoesByTheFlagsAndElseByTheCheckpoint) {
  TrainingState by_seven{.iteration = 1};
  record_split(kSeven, by_seven);
  const TrainingState in_file_order{.iteration = 1}, untrained;
  struct Case {
    SplitOrder order;
    std::int64_t seed;
    SplitRule of_seven, of_file_order, of_untrained;
  };
  const SplitRule nine{.seed = 9};
  for (const Case& c :
       {Case{SplitOrder::kAuto, 0, kSeven, kFileOrder, kDefault}, Case{SplitOrder::kAuto, 9, nine, nine, nine},
        Case{SplitOrder::kRandom, 0, kSeven, kDefault, kDefault}, Case{SplitOrder::kRandom, 9, nine, nine, nine},
        Case{SplitOrder::kFile, 0, kFileOrder, kFileOrder, kFileOrder}}) {
    const SplitSettings settings{.order = c.order, .seed = c.seed};
    EXPECT_EQ(evaluation_split(settings, by_seven), c.of_seven);
    EXPECT_EQ(evaluation_split(settings, in_file_order), c.of_file_order);
    EXPECT_EQ(evaluation_split(settings, untrained), c.of_untrained);
    EXPECT_EQ(training_split(settings, {}), c.of_untrained);
  }
}

TEST(SplitSettings, FaultsNameTheFlags) {
  EXPECT_THAT(SplitSettings{}.faults().texts(), IsEmpty());
  EXPECT_THAT(SplitSettings{.seed = -1}.faults().texts(), ::testing::ElementsAre(HasSubstr("--split-seed is -1")));
  EXPECT_THAT((SplitSettings{.weights = "x", .order = SplitOrder::kFile, .seed = 3}.faults().texts()),
              ::testing::ElementsAre(HasSubstr("--split \"x\""),
                                     AllOf(HasSubstr("--split-seed 3"), HasSubstr("--split-order file"))));
}

}  // namespace
}  // namespace teratron::testing
