// Layouts regroup a batch and nothing else.
#include "data/batch_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "data/dataset_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

struct Layout {
  std::int64_t global_batch, micro_batch, ranks;
  std::string text() const { return fmt::format("{} in micro-batches of {} on {}", global_batch, micro_batch, ranks); }
};

// The positions of a step, rank by rank and micro-batch by micro-batch.
std::vector<std::int64_t> positions_of_step(const Layout& layout, std::int64_t consumed) {
  std::vector<std::int64_t> positions;
  for (std::int64_t rank = 0; rank < layout.ranks; ++rank) {
    const BatchSampler sampler(layout.global_batch, layout.micro_batch, rank, layout.ranks);
    EXPECT_GE(sampler.micro_batches(), 1) << layout.text();
    for (std::int64_t index = 0; index < sampler.micro_batches(); ++index) {
      const SampleRange range = sampler.samples(consumed, index);
      EXPECT_GE(range.count, 1) << layout.text();
      EXPECT_LE(range.count, layout.micro_batch) << layout.text();
      for (std::int64_t i = 0; i < range.count; ++i) positions.push_back(range.first + i);
    }
  }
  return positions;
}

std::vector<std::int64_t> positions_from(std::int64_t consumed, std::int64_t count) {
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < count; ++i) positions.push_back(consumed + i);
  return positions;
}

// Dealt out by length, every place is some rank's once, micro-batches are as large as without, and those that the ranks
// run at the same time follow one another.
TEST(BatchSampler, PlacesByLengthAreDealtOutInTurn) {
  for (std::int64_t global_batch = 1; global_batch <= 24; ++global_batch) {
    for (std::int64_t ranks = 1; ranks <= global_batch; ++ranks) {
      for (std::int64_t micro_batch = 1; micro_batch <= global_batch + 1; ++micro_batch) {
        const Layout layout{global_batch, micro_batch, ranks};
        std::int64_t next = 0;
        for (std::int64_t index = 0; next < global_batch; ++index) {
          for (std::int64_t rank = 0; rank < ranks; ++rank) {
            const BatchSampler sampler(global_batch, micro_batch, rank, ranks);
            if (index >= sampler.micro_batches()) continue;
            const SampleRange places = sampler.places_by_length(index);
            ASSERT_EQ(places.first, next) << layout.text();
            ASSERT_EQ(places.count, sampler.samples(0, index).count) << layout.text();
            next += places.count;
          }
        }
        ASSERT_EQ(next, global_batch) << layout.text();
      }
    }
  }
}

TEST(BatchSampler, EveryLayoutReadsTheSamePositionsInTheSameOrder) {
  for (std::int64_t global_batch = 1; global_batch <= 24; ++global_batch) {
    for (std::int64_t ranks = 1; ranks <= global_batch; ++ranks) {
      for (std::int64_t micro_batch = 1; micro_batch <= global_batch + 1; ++micro_batch) {
        const Layout layout{global_batch, micro_batch, ranks};
        ASSERT_EQ(positions_of_step(layout, 7), positions_from(7, global_batch)) << layout.text();
      }
    }
  }
  RandomSequence random(RandomStream{.seed = 4});
  for (int trial = 0; trial < 300; ++trial) {
    const auto global_batch = static_cast<std::int64_t>(1 + random.below(3000));
    const Layout layout{global_batch, static_cast<std::int64_t>(1 + random.below(1 + random.below(3200))),
                        static_cast<std::int64_t>(1 + random.below(static_cast<std::uint64_t>(global_batch)))};
    const auto consumed = static_cast<std::int64_t>(random.next_u32()) << random.below(20);
    ASSERT_EQ(positions_of_step(layout, consumed), positions_from(consumed, global_batch)) << layout.text();
  }
}

TEST(BatchSampler, PlansForTheMostOfAnyRankAndNoMore) {
  RandomSequence random(RandomStream{.seed = 5});
  for (int trial = 0; trial < 300; ++trial) {
    const auto global_batch = static_cast<std::int64_t>(1 + random.below(200));
    const Layout layout{global_batch, static_cast<std::int64_t>(1 + random.below(40)),
                        static_cast<std::int64_t>(1 + random.below(static_cast<std::uint64_t>(global_batch)))};
    std::int64_t micro_batches = 0, samples = 0, least_share = global_batch, most_share = 0;
    for (std::int64_t rank = 0; rank < layout.ranks; ++rank) {
      const BatchSampler sampler(global_batch, layout.micro_batch, rank, layout.ranks);
      micro_batches = std::max(micro_batches, sampler.micro_batches());
      std::int64_t share = 0;
      for (std::int64_t index = 0; index < sampler.micro_batches(); ++index) {
        samples = std::max(samples, sampler.samples(0, index).count);
        share += sampler.samples(0, index).count;
      }
      least_share = std::min(least_share, share);
      most_share = std::max(most_share, share);
    }
    const BatchSampler any(global_batch, layout.micro_batch, 0, layout.ranks);
    EXPECT_EQ(any.most_micro_batches(), micro_batches) << layout.text();
    EXPECT_EQ(any.largest_micro_batch(), samples) << layout.text();
    EXPECT_LE(most_share - least_share, 1) << layout.text();
  }
}

TEST(BatchSampler, RanksTakeEqualRunsOfABatchThatDivides) {
  const BatchSampler sampler(24, 4, 1, 3);
  EXPECT_EQ(sampler.micro_batches(), 2);
  EXPECT_EQ(sampler.samples(100, 0), (SampleRange{108, 4}));
  EXPECT_EQ(sampler.samples(100, 1), (SampleRange{112, 4}));
}

// A share is cut as the sizes say, and after them as the last one does.
TEST(BatchSampler, MicroBatchesOfDifferentSizesAreTheSamePositionsInTheSameOrder) {
  RandomSequence random(RandomStream{.seed = 5});
  const auto up_to = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most)));
  };
  for (int trial = 0; trial < 300; ++trial) {
    const std::int64_t ranks = up_to(4), global_batch = ranks + up_to(30) - 1;
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(up_to(5)));
    for (std::int64_t& size : sizes) size = up_to(5);
    std::vector<std::int64_t> positions;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const BatchSampler sampler(global_batch, sizes, rank, ranks);
      ASSERT_LE(sampler.micro_batches(), sampler.most_micro_batches());
      for (std::int64_t index = 0; index < sampler.micro_batches(); ++index) {
        const SampleRange range = sampler.samples(100, index);
        const std::int64_t size = sizes[std::min(static_cast<std::size_t>(index), sizes.size() - 1)];
        const bool is_last = index + 1 == sampler.micro_batches();
        ASSERT_TRUE(is_last ? range.count >= 1 && range.count <= size : range.count == size);
        ASSERT_LE(range.count, sampler.largest_micro_batch());
        for (std::int64_t i = 0; i < range.count; ++i) positions.push_back(range.first + i);
      }
    }
    ASSERT_EQ(positions, positions_from(100, global_batch));
  }
}

// A task's example is a group of samples; a batch may have fewer groups than there are ranks.
TEST(BatchSampler, GroupsStayTogetherAndEachIsReadOnceInEveryLayout) {
  for (const std::int64_t together : {1, 2, 4}) {
    for (std::int64_t groups = 1; groups <= 9; ++groups) {
      for (std::int64_t ranks = 1; ranks <= 12; ++ranks) {
        for (std::int64_t micro_batch = 1; micro_batch <= groups + 1; ++micro_batch) {
          std::vector<std::int64_t> positions, places;
          for (std::int64_t rank = 0; rank < ranks; ++rank) {
            const BatchSampler sampler(groups * together, {micro_batch * together}, rank, ranks, together);
            ASSERT_LE(sampler.micro_batches(), sampler.most_micro_batches());
            for (std::int64_t index = 0; index < sampler.micro_batches(); ++index) {
              const SampleRange range = sampler.samples(70 * together, index), place = sampler.places_by_length(index);
              ASSERT_EQ(range.first % together + range.count % together + place.first % together, 0);
              ASSERT_EQ(place.count, range.count);
              ASSERT_LE(range.count, sampler.largest_micro_batch());
              for (std::int64_t i = 0; i < range.count; ++i) positions.push_back(range.first + i);
              for (std::int64_t i = 0; i < range.count; ++i) places.push_back(place.first + i);
            }
          }
          std::ranges::sort(places);
          ASSERT_EQ(positions, positions_from(70 * together, groups * together));
          ASSERT_EQ(places, positions_from(0, groups * together));
        }
      }
    }
  }
}

TEST(BatchSampler, SizesThatMakeNoSenseAreRefusedByTheirFlags) {
  EXPECT_THAT(message_of<UserError>([] { BatchSampler(0, 1); }), HasSubstr("--global-batch-size 0"));
  EXPECT_THAT(message_of<UserError>([] { BatchSampler(8, -2); }), HasSubstr("--micro-batch-size -2"));
  EXPECT_THAT(message_of<UserError>([] { BatchSampler(8, 1LL << 60); }), HasSubstr("--micro-batch-size"));
}

}  // namespace
}  // namespace teratron::testing
