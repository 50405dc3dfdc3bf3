// Layouts regroup a batch and nothing else.
#include "data/batch_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "data/dataset_fixture.h"

namespace teratron {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The positions of a step, rank by rank and micro-batch by micro-batch.
std::vector<std::int64_t> positions_of_step(std::int64_t global_batch, std::int64_t micro_batch, std::int64_t ranks,
                                            std::int64_t consumed) {
  std::vector<std::int64_t> positions;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const BatchSampler sampler(global_batch, micro_batch, rank, ranks);
    for (std::int64_t index = 0; index < sampler.micro_batches(); ++index) {
      const SampleRange range = sampler.samples(consumed, index);
      EXPECT_EQ(range.count, micro_batch);
      for (std::int64_t i = 0; i < range.count; ++i) positions.push_back(range.first + i);
    }
  }
  return positions;
}

TEST(BatchSampler, EveryLayoutReadsTheSamePositionsInTheSameOrder) {
  for (const std::int64_t consumed : {std::int64_t{0}, std::int64_t{7}, std::int64_t{1} << 40}) {
    for (std::int64_t global_batch = 1; global_batch <= 48; ++global_batch) {
      std::vector<std::int64_t> expected;
      for (std::int64_t i = 0; i < global_batch; ++i) expected.push_back(consumed + i);
      for (std::int64_t ranks = 1; ranks <= global_batch; ++ranks) {
        for (std::int64_t micro_batch = 1; micro_batch * ranks <= global_batch; ++micro_batch) {
          if (global_batch % (micro_batch * ranks) != 0) continue;
          ASSERT_EQ(positions_of_step(global_batch, micro_batch, ranks, consumed), expected)
              << global_batch << " in micro-batches of " << micro_batch << " on " << ranks;
        }
      }
    }
  }
}

TEST(BatchSampler, RanksTakeEqualRunsOfTheBatch) {
  const BatchSampler sampler(24, 4, 1, 3);
  EXPECT_EQ(sampler.micro_batches(), 2);
  EXPECT_EQ(sampler.samples(100, 0), (SampleRange{108, 4}));
  EXPECT_EQ(sampler.samples(100, 1), (SampleRange{112, 4}));
}

TEST(BatchSampler, ABatchThatDoesNotDivideIsToldWithTheNearestThatDo) {
  EXPECT_THAT(message_of<UserError>([] { BatchSampler(50, 4, 0, 3); }),
              AllOf(HasSubstr("--global-batch-size 50"), HasSubstr("nearest that are: 48, 60")));
  EXPECT_THAT(message_of<UserError>([] { BatchSampler(8, 16); }), HasSubstr("nearest that are: 16"));
  EXPECT_THAT(message_of<UserError>([] { BatchSampler(0, 1); }), HasSubstr("--global-batch-size 0"));
  EXPECT_THAT(message_of<UserError>([] { BatchSampler(8, -2); }), HasSubstr("--micro-batch-size -2"));
  EXPECT_THAT(message_of<UserError>([] { BatchSampler(8, 1LL << 60); }), HasSubstr("--micro-batch-size"));
}

}  // namespace
}  // namespace teratron
