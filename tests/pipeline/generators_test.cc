// Every schedule by name, over random sizes: fit to run, and as much memory as the literature says.
#include "pipeline/generators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "pipeline/checker.h"
#include "pipeline/memory.h"
#include "pipeline/random_schedule.h"
#include "pipeline/timing/closed_form.h"

namespace teratron::testing {
namespace {

using namespace pipeline;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string text_of(ScheduleKind kind, const ScheduleSize& size) {
  return fmt::format("{}: {} stages, {} micro-batches, {} slices, {} virtual stages", name_of(kind), size.stages,
                     size.micro_batches, size.slices, size.virtual_stages);
}

TEST(Generators, EveryScheduleIsFitToRunWhateverItsSize) {
  RandomSequence random(RandomStream{.seed = 1});
  for (const ScheduleKind kind : kAllKinds) {
    for (int trial = 0; trial < 100; ++trial) {
      const ScheduleSize size = random_size(random, kind);
      ASSERT_THAT(schedule_faults(make_schedule(kind, size)), IsEmpty()) << text_of(kind, size);
    }
  }
}

TEST(Generators, StageZeroHoldsTheActivationsOfTheClosedForm) {
  RandomSequence random(RandomStream{.seed = 2});
  for (const ScheduleKind kind : kAllKinds) {
    for (int trial = 0; trial < 100; ++trial) {
      const ScheduleSize size = random_size(random, kind);
      const std::vector<MemoryPeak> peaks = memory_peaks(make_schedule(kind, size));
      const std::optional<ClosedForm> form = closed_form(kind, size, 1, 2);
      if (!form) break;
      ASSERT_DOUBLE_EQ(peaks[0].micro_batches, form->peak_micro_batches) << text_of(kind, size);
      for (const MemoryPeak& peak : peaks) ASSERT_LE(peak.slices, peaks[0].slices) << text_of(kind, size);
    }
  }
}

TEST(Generators, WithoutSlicesTeraPipeIsGpipeAndSeq1F1BIs1F1BAndSoIsInterleavedOfOneChunk) {
  RandomSequence random(RandomStream{.seed = 3});
  for (int trial = 0; trial < 50; ++trial) {
    const ScheduleSize size = random_size(random, ScheduleKind::k1F1B);
    ASSERT_EQ(make_schedule(ScheduleKind::kTeraPipe, size), make_schedule(ScheduleKind::kGpipe, size));
    ASSERT_EQ(make_schedule(ScheduleKind::kSeq1F1B, size), make_schedule(ScheduleKind::k1F1B, size));
    ASSERT_EQ(
        make_schedule(ScheduleKind::kInterleaved,
                      {.stages = size.stages, .micro_batches = size.stages * size.micro_batches}),
        make_schedule(ScheduleKind::k1F1B, {.stages = size.stages, .micro_batches = size.stages * size.micro_batches}));
  }
}

TEST(Generators, Seq1F1BIWithoutSlicesIsInterleavedAndWithOneCellAStageItIsSeq1F1B) {
  RandomSequence random(RandomStream{.seed = 4});
  for (int trial = 0; trial < 100; ++trial) {
    const ScheduleSize cells = random_size(random, ScheduleKind::kInterleaved);
    ASSERT_EQ(make_schedule(ScheduleKind::kSeq1F1BInterleaved, cells),
              make_schedule(ScheduleKind::kInterleaved, cells));
    ScheduleSize slices = random_size(random, ScheduleKind::kSeq1F1B);
    if (random.below(2) == 0) cut_unequally(random, slices);
    ASSERT_EQ(make_schedule(ScheduleKind::kSeq1F1BInterleaved, slices), make_schedule(ScheduleKind::kSeq1F1B, slices));
  }
}

// Groups of micro-batches that the stages do not fill, and micro-batches with slices of their own.
TEST(Generators, Seq1F1BIOfAnySizeIsFitToRunInTheMemoryOfItsFormula) {
  RandomSequence random(RandomStream{.seed = 5});
  for (int trial = 0; trial < 400; ++trial) {
    ScheduleSize size{.stages = between(random, 1, 8),
                      .micro_batches = between(random, 1, 9),
                      .slices = between(random, 1, 9),
                      .virtual_stages = between(random, 1, 4)};
    const bool differ = random.below(3) == 0;
    if (differ) cut_unequally(random, size);
    const Schedule schedule = make_schedule(ScheduleKind::kSeq1F1BInterleaved, size);
    ASSERT_THAT(schedule_faults(schedule), IsEmpty()) << text_of(ScheduleKind::kSeq1F1BInterleaved, size);
    if (differ) continue;
    size.micro_batches = (size.stages + size.slices - 1) / size.slices * size.micro_batches;  // the group, many times
    const std::optional<ClosedForm> form = closed_form(ScheduleKind::kSeq1F1BInterleaved, size, 1, 2);
    ASSERT_LE(memory_peaks(schedule)[0].micro_batches, form->peak_micro_batches + 1e-9);
  }
}

// F0.1 is the forward of micro-batch 0, slice 1.
std::vector<std::string> words_of(const std::vector<Action>& list) {
  std::vector<std::string> words;
  for (const Action& a : list) {
    words.push_back(fmt::format("{}{}.{}", a.pass == Pass::kForward ? "F" : "B", a.micro_batch, a.slice + a.chunk));
  }
  return words;
}

TEST(Generators, Seq1F1BRunsTheOrderOfItsPaper) {
  // arXiv 2406.03488, figure 3: three slices, the last of two stages runs k - 1 forwards before it takes turns.
  const Schedule schedule = make_schedule(ScheduleKind::kSeq1F1B, {.stages = 2, .micro_batches = 2, .slices = 3});
  EXPECT_THAT(words_of(schedule.actions[1]), ElementsAre("F0.0", "F0.1", "F0.2", "B0.2", "F1.0", "B0.1", "F1.1", "B0.0",
                                                         "F1.2", "B1.2", "B1.1", "B1.0"));
  EXPECT_THAT(words_of(schedule.actions[0]), ElementsAre("F0.0", "F0.1", "F0.2", "F1.0", "B0.2", "F1.1", "B0.1", "F1.2",
                                                         "B0.0", "B1.2", "B1.1", "B1.0"));
}

TEST(Generators, InterleavedRunsMegatronsOrder) {
  // Two stages of two chunks: after the dot stands the chunk.
  const Schedule schedule =
      make_schedule(ScheduleKind::kInterleaved, {.stages = 2, .micro_batches = 4, .virtual_stages = 2});
  EXPECT_THAT(words_of(schedule.actions[0]),
              ElementsAre("F0.0", "F1.0", "F0.1", "F1.1", "F2.0", "B0.1", "F3.0", "B1.1", "F2.1", "B0.0", "F3.1",
                          "B1.0", "B2.1", "B3.1", "B2.0", "B3.0"));
  EXPECT_THAT(words_of(schedule.actions[1]),
              ElementsAre("F0.0", "F1.0", "F0.1", "B0.1", "F1.1", "B1.1", "F2.0", "B0.0", "F3.0", "B1.0", "F2.1",
                          "B2.1", "F3.1", "B3.1", "B2.0", "B3.0"));
}

TEST(Generators, Seq1F1BIRunsAllSlicesOfAMicroBatchThroughEachCellInTurn) {
  // Two stages of two cells, two slices: after the dot stands the slice, after the colon the cell of the stage.
  const Schedule schedule = make_schedule(ScheduleKind::kSeq1F1BInterleaved,
                                          {.stages = 2, .micro_batches = 2, .slices = 2, .virtual_stages = 2});
  const auto words = [&](std::size_t stage) {
    std::string text;
    for (const Action& a : schedule.actions[stage]) {
      text += fmt::format("{}{}.{}:{} ", a.pass == Pass::kForward ? "F" : "B", a.micro_batch, a.slice, a.chunk);
    }
    return text;
  };
  EXPECT_EQ(words(1),
            "F0.0:0 F0.1:0 F0.0:1 F0.1:1 B0.1:1 F1.0:0 B0.0:1 F1.1:0 B0.1:0 F1.0:1 B0.0:0 F1.1:1 "
            "B1.1:1 B1.0:1 B1.1:0 B1.0:0 ");
  EXPECT_EQ(words(0),
            "F0.0:0 F0.1:0 F0.0:1 F0.1:1 F1.0:0 F1.1:0 B0.1:1 F1.0:1 B0.0:1 F1.1:1 B0.1:0 B0.0:0 "
            "B1.1:1 B1.0:1 B1.1:0 B1.0:0 ");
}

TEST(Generators, AWrongSizeIsRefusedAndTheMessageNamesOneThatWorks) {
  EXPECT_THAT(size_faults(ScheduleKind::kInterleaved, {.stages = 4, .micro_batches = 6, .virtual_stages = 2}).texts(),
              ElementsAre(HasSubstr("nearest are: 4 and 8")));
  EXPECT_THAT(size_faults(ScheduleKind::kInterleaved, {.stages = 4, .micro_batches = 3, .virtual_stages = 2}).texts(),
              ElementsAre(HasSubstr("nearest is: 4")));
  EXPECT_THAT(size_faults(ScheduleKind::kGpipe, {.slices = 2}).texts(), ElementsAre(HasSubstr("terapipe or seq1f1b")));
  EXPECT_THAT(size_faults(ScheduleKind::k1F1B, {.virtual_stages = 2}).texts(), ElementsAre(HasSubstr("interleaved")));
  EXPECT_THAT(size_faults(ScheduleKind::kTeraPipe, {.stages = 0, .micro_batches = -1}).texts(),
              ElementsAre(HasSubstr("--stages is 0"), HasSubstr("--micro-batches is -1")));
  EXPECT_THROW(make_schedule(ScheduleKind::kGpipe, {.slices = 2}), UserError);
  EXPECT_THAT(size_faults(ScheduleKind::kVHalf, {.virtual_stages = 1}).texts(),
              ElementsAre(HasSubstr("has two cells a stage; give 2")));
  EXPECT_THAT(size_faults(ScheduleKind::kVMin, {.slices = 2, .virtual_stages = 3}).texts(),
              ElementsAre(HasSubstr("give 2, or choose seq1f1b-i")));
  EXPECT_THAT(size_faults(ScheduleKind::kTeraPipe, {.slices = 2, .virtual_stages = 2}).texts(),
              ElementsAre(HasSubstr("choose seq1f1b-i, v-min, v-half or v-zb")));
}

}  // namespace
}  // namespace teratron::testing
