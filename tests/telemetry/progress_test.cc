#include "telemetry/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "console/written_stream.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr ProgressScale kScale = {
    .total_iterations = 25, .log_interval = 10, .total_samples = 8 * 25, .flops_per_token = 3e9 / 8 / 256};

ProgressPoint point(std::int64_t iteration) {
  return {.iteration = iteration,
          .global_batch_size = 8,
          .consumed_samples = 8 * iteration,
          .tokens = 8 * 256,
          .loss = static_cast<double>(iteration),
          .gradient_norm = 0.25,
          .learning_rate = 1.5e-4,
          .seconds = 0.05};
}

TEST(Progress, AwayFromATerminalThereIsALineAnIntervalAndOneAtTheEnd) {
  WrittenStream sink;
  {
    Progress progress(sink.file(), 0, kScale);
    for (std::int64_t i = 1; i <= 25; ++i) progress.iteration(point(i));
  }
  EXPECT_THAT(sink.lines(), ElementsAre(StartsWith("iteration 10/25 |"), StartsWith("iteration 20/25 |"),
                                        StartsWith("iteration 25/25 |")));
  EXPECT_THAT(sink.text(), Not(HasSubstr("\r")));
}

TEST(Progress, ALogLineHasMegatronsFieldsAveragedOverTheInterval) {
  WrittenStream sink;
  Progress progress(sink.file(), 0, kScale);
  for (std::int64_t i = 1; i <= 20; ++i) progress.iteration(point(i));
  EXPECT_EQ(sink.lines()[1],
            "iteration 20/25 | consumed samples: 160 | ms/iteration: 50.0 | GFLOP/s: 60.0 | learning rate: 1.500e-04 | "
            "global batch size: 8 | loss: 15.50000 | grad norm: 0.250");
}

TEST(Progress, ANormThatIsNoNumberHasNoSign) {
  ProgressScale scale = kScale;
  scale.log_interval = 1;
  WrittenStream sink;
  Progress progress(sink.file(), 0, scale);
  ProgressPoint skipped = point(1);
  skipped.gradient_norm = std::copysign(std::numeric_limits<double>::quiet_NaN(), -1.0);
  progress.iteration(skipped);
  EXPECT_THAT(sink.lines(), ElementsAre(EndsWith("grad norm: nan")));
}

TEST(Progress, WhereThePeakIsKnownItsUseIsShown) {
  ProgressScale scale = kScale;
  scale.peak_flops = 240e9;
  WrittenStream sink;
  Progress progress(sink.file(), 0, scale);
  for (std::int64_t i = 1; i <= 20; ++i) progress.iteration(point(i));
  EXPECT_THAT(sink.lines()[1], HasSubstr("GFLOP/s: 60.0 | MFU: 25.0 % | learning"));
  EXPECT_THAT(progress.live_line(), HasSubstr("tokens/s  MFU 25.0 %  "));
}

TEST(Progress, AResumedRunAveragesOnlyOverWhatItHasSeen) {
  WrittenStream sink;
  Progress progress(sink.file(), 0, kScale);
  for (std::int64_t i = 18; i <= 20; ++i) progress.iteration(point(i));
  EXPECT_THAT(sink.lines(), ElementsAre(HasSubstr("loss: 19.00000")));
}

TEST(Progress, FurtherRatesFollowTheLossAveragedAsItIs) {
  WrittenStream sink;
  Progress progress(sink.file(), 0, kScale);
  for (std::int64_t i = 1; i <= 2; ++i) {
    ProgressPoint with_rates = point(i);
    with_rates.rates = {{"reward margin", 0.5 * static_cast<double>(i)}, {"reward accuracy", 1}};
    progress.iteration(with_rates);
  }
  EXPECT_THAT(progress.log_line(),
              HasSubstr("loss: 1.50000 | reward margin: 0.7500 | reward accuracy: 1.0000 | grad norm"));
  EXPECT_THAT(progress.live_line(), HasSubstr("loss 1.5000  reward margin 0.7500  reward accuracy 1.0000  "));
}

TEST(Progress, OnATerminalALineOfEachIntervalStaysAboveTheLiveOne) {
  WrittenStream sink;
  {
    Progress progress(sink.file(), 200, kScale);
    for (std::int64_t i = 1; i <= 25; ++i) progress.iteration(point(i));
  }
  const auto shows = [](const std::string& end) { return HasSubstr("\r\x1b[K" + end); };
  EXPECT_THAT(sink.lines(), ElementsAre(shows("10/25  loss 5.5000"), shows("20/25  loss 15.5000"), shows("25/25  ")));
}

TEST(Progress, OnATerminalOneLineIsDrawnOverAndOver) {
  WrittenStream sink;
  {
    ProgressScale scale = kScale;
    scale.log_interval = 100;
    Progress progress(sink.file(), 200, scale);
    for (std::int64_t i = 1; i <= 25; ++i) progress.iteration(point(i));
    EXPECT_THAT(sink.text(), Not(HasSubstr("\n")));
    EXPECT_THAT(progress.live_line(), AllOf(HasSubstr("25/25"), HasSubstr("loss 13.0000"), HasSubstr("41.0 k tokens/s"),
                                            HasSubstr("lr 1.50e-04")));
  }
  EXPECT_THAT(sink.lines(), SizeIs(1));
  EXPECT_THAT(sink.text(), EndsWith("\n"));
}

TEST(Progress, TheTimeLeftFollowsFromTheLastIterations) {
  WrittenStream sink;
  Progress progress(sink.file(), 200, kScale);
  progress.iteration(point(5));
  EXPECT_THAT(progress.live_line(), HasSubstr("1.0 s left"));  // 20 iterations of 50 ms
}

TEST(Progress, RatesGoByTokensAndTheTimeLeftBySamplesWhereTheBatchGrows) {
  WrittenStream sink;
  Progress progress(sink.file(), 200, kScale);
  ProgressPoint small = point(1), large = point(2);
  small.global_batch_size = 2;
  small.tokens = 400;  // the rest of its samples is padding
  small.seconds = 1;
  large.global_batch_size = 18;
  large.consumed_samples = 20;
  large.tokens = 4000;
  large.seconds = 3;
  progress.iteration(small);
  progress.iteration(large);  // 4400 tokens and 20 samples in 4 s, 180 to go
  EXPECT_THAT(progress.live_line(), AllOf(HasSubstr("1.10 k tokens/s"), HasSubstr("36.0 s left")));
  EXPECT_THAT(progress.log_line(), AllOf(HasSubstr("global batch size: 18 "), HasSubstr("GFLOP/s: 1.6 ")));
}

TEST(Progress, TheLiveLineStaysWithinTheTerminal) {
  for (int columns = 1; columns < 60; ++columns) {
    WrittenStream sink;
    {
      Progress progress(sink.file(), columns, kScale);
      progress.iteration(point(1));
    }
    const std::string text = sink.text();
    const std::size_t begin = text.rfind("\x1b[K") + 3;
    EXPECT_LT(text.find('\n') - begin, static_cast<std::size_t>(columns));
  }
}

TEST(Progress, MessagesStandAboveTheLiveLine) {
  WrittenStream sink;
  {
    Progress progress(sink.file(), 200, kScale);
    progress.message("before");
    progress.iteration(point(1));
    progress.message("saved somewhere");
  }
  const std::vector<std::string> lines = sink.lines();
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_EQ(lines[0], "before");
  EXPECT_THAT(lines[1], EndsWith("\r\x1b[Ksaved somewhere"));
  EXPECT_THAT(lines[2], HasSubstr("1/25"));
}

TEST(Progress, APipeOrFileIsNoTerminal) {
  WrittenStream sink;
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(terminal_columns(file), 0);
  std::fclose(file);
}

}  // namespace
}  // namespace teratron::testing
