// A task that takes long says so in time, and one that does not says nothing.
#include "console/long_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "console/written_stream.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

void wait(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

// Returns when so many lines, or `text`, have been written.
void wait_for_lines(WrittenStream& written, std::size_t lines) {
  while (written.lines().size() < lines) wait(5);
}
void wait_for_text(WrittenStream& written, const std::string& text) {
  while (written.text().find(text) == std::string::npos) wait(5);
}

TEST(LongTask, ReportsTheTimeLeftByTheShareThatIsDone) {
  EXPECT_EQ(progress_text("reading", 0.25, 30), "reading: 25 %, about 1 min 30 s left");
  EXPECT_EQ(progress_text("reading", 0.999, 10), "reading: 99 %, about 10 ms left");
  EXPECT_EQ(progress_text("reading", 1.2, 10), "reading: 100 %, about 0 ms left");  // more than was expected
  EXPECT_EQ(progress_text("reading", 0, 5), "reading: 5.0 s so far");
}

TEST(LongTask, AShortOneSaysNothing) {
  for (const int columns : {0, 80}) {
    WrittenStream written;
    {
      const LongTask task("reading", [] { return 0.5; }, {.file = written.file(), .columns = columns});
      wait(150);
    }
    EXPECT_THAT(written.text(), IsEmpty());
  }
}

TEST(LongTask, ALongOneSpeaksUpOnceAndThenNowAndThen) {
  WrittenStream written;
  {
    const LongTask task("reading", [] { return 0.5; }, {.file = written.file(), .columns = 0});
    wait_for_lines(written, 1);
  }
  ASSERT_EQ(written.lines().size(), 1U) << written.text();
  EXPECT_THAT(written.lines()[0], MatchesRegex("reading: 50 %, about .* left"));
  WrittenStream often;
  {
    const LongTask task("reading", {}, {.file = often.file(), .columns = 0, .patience = 0, .between = 0.1});
    wait_for_lines(often, 2);
  }
  EXPECT_THAT(often.lines().back(), AllOf(StartsWith("reading: "), EndsWith(" so far")));
}

TEST(LongTask, TheNextOneHasAClockOfItsOwn) {
  WrittenStream written;
  {
    LongTask task("counting", {}, {.file = written.file(), .columns = 0, .patience = 1});
    wait_for_text(written, "counting: ");
    task.next("joining", [] { return 0.1; });
    wait(100);
  }
  EXPECT_THAT(written.text(), HasSubstr("counting: "));
  EXPECT_THAT(written.text(), Not(HasSubstr("joining")));
}

TEST(LongTask, OnATerminalItLeavesAnEmptyLine) {
  WrittenStream written;
  {
    const LongTask task("reading", {}, {.file = written.file(), .columns = 80, .patience = 0});
    wait_for_text(written, "reading: ");
  }
  EXPECT_THAT(written.text(), AllOf(HasSubstr("reading: "), EndsWith("\r\x1b[K")));
}

}  // namespace
}  // namespace teratron::testing
