#include "executor/recomputation.h"

#include <gtest/gtest.h>

#include <random>

namespace teratron::testing {
namespace {

TEST(Recomputation, IsReadAsItIsWritten) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<StageRecompute> stages(1 + random() % 5);
    for (StageRecompute& stage : stages) {
      stage.kind = static_cast<Recompute>(random() % 3);
      if (stage.kind == Recompute::kNone) continue;
      stage.layers = static_cast<std::int64_t>(random() % 3);
      stage.slices = static_cast<std::int64_t>(random() % 3);
    }
    const Recomputation written(stages);
    const auto read = parse_recompute(written.text());
    ASSERT_TRUE(read.has_value()) << written.text();
    EXPECT_EQ(Recomputation(*read), written) << written.text();
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      EXPECT_EQ(written.of(static_cast<int>(stage)), stages[stage]) << written.text();
    }
  }
}

TEST(Recomputation, OfAllStagesAlikeIsOne) {
  const StageRecompute full{.kind = Recompute::kFull}, none;
  EXPECT_EQ(Recomputation(std::vector{full, full}), Recomputation(Recompute::kFull));
  EXPECT_EQ(Recomputation(std::vector{none, none}), Recomputation());
  EXPECT_EQ(Recomputation(std::vector{full, full}).uniform(), Recompute::kFull);
  EXPECT_EQ(Recomputation().uniform(), Recompute::kNone);
  EXPECT_EQ(Recomputation(std::vector{full, none}).uniform(), std::nullopt);
  EXPECT_EQ(Recomputation(std::vector{StageRecompute{.kind = Recompute::kFull, .layers = 1}}).uniform(), std::nullopt);
  EXPECT_EQ(Recomputation(std::vector{full, none}).text(), "full,none");
}

TEST(Recomputation, IsOfTheFirstLayersInTheFirstSlices) {
  const StageRecompute part{.kind = Recompute::kSelective, .layers = 3, .slices = 2};
  for (std::int64_t slice = 0; slice < 4; ++slice) {
    std::int64_t again = 0;
    for (std::int64_t layer = 0; layer < 5; ++layer) {
      const bool is_first = layer < 3 && slice < 2;
      EXPECT_EQ(part.of(layer, slice), is_first ? Recompute::kSelective : Recompute::kNone);
      again += is_first ? 1 : 0;
    }
    EXPECT_EQ(part.layers_of(5, slice), again);
    EXPECT_EQ(part.layers_of(2, slice), std::min<std::int64_t>(again, 2));
    EXPECT_EQ(StageRecompute{.kind = Recompute::kFull}.layers_of(5, slice), 5);
    EXPECT_EQ(StageRecompute{}.layers_of(5, slice), 0);
  }
}

TEST(Recomputation, TextsThatAreNoListsAreNotRead) {
  for (const char* text : {"", ",", "full,", ",none", "full:", "full:0", "full:-1", "full@", "full:1:2", "full@1:2",
                           "none:1", "none@1", "all", "full ", "full:99999999999999999999"}) {
    EXPECT_EQ(parse_recompute(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace teratron::testing
