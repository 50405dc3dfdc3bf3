// Ranks that are processes with emulated GPUs of their own, whose tensors NCCL's stand-in moves
// (tests/emulated_gpu/nccl): every exchange exact, training with the bits of threads, and failures that end the job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <set>
#include <sstream>

#include "base/trials.h"
#include "base/turn.h"
#include "comm/process/launched_job.h"
#include "pipeline/generators.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kLongest{120};  // far more than any of them takes; one that hangs is ended

class NcclRanks : public ::testing::Test {
 protected:
  static constexpr const char* kProgram = TERATRON_NCCL_PROGRAM;
  // `variables`: of rank `of` alone, "NAME=value" each.
  static JobOutcome run(int ranks, const std::string& words, const std::string& variables = "", int of = 0) {
    const std::string line =
        fmt::format("export EMULATED_GPU=late; (( RANK != {} )) || export UNUSED= {}; exec {}", of, variables, words);
    return launch(LaunchedBy::kAddress, ranks, {"bash", "-c", line})->wait(kLongest);
  }
  struct Layout {
    int ranks = 0, stages = 0;
    std::string schedule;
  };
  static Layout layout_of(int seed) {
    std::istringstream words(ChildProgram({kProgram, "layout", std::to_string(seed)}).wait().output);
    Layout layout;
    words >> layout.ranks >> layout.stages >> layout.schedule;
    return layout;
  }
  static std::set<std::string> lines_of(const std::string& text) {
    std::set<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.insert(line);
    return lines;
  }
  // The third of four stages, in the first forward pass.
  static constexpr int kFailing = 2;
  static void expect_lost(const JobOutcome& outcome, const std::string& reason) {
    EXPECT_NE(outcome.exit_code, 0);
    for (std::size_t rank = 0; rank < outcome.errors_of_rank.size(); ++rank) {
      if (rank == kFailing) continue;
      EXPECT_THAT(outcome.errors_of_rank[rank],
                  AllOf(HasSubstr(fmt::format("error: rank {} on host ", kFailing)), HasSubstr(reason)))
          << outcome.errors;
    }
  }
};

TEST_F(NcclRanks, ExchangeExactly) {
  for (const int ranks : {2, 3}) {
    const JobOutcome outcome = run(ranks, fmt::format("{} channels {}", TERATRON_COMM_GPU_PROGRAM, ranks));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, HasSubstr(" are exact"));
  }
}

// Before a run shows its plan.
TEST_F(NcclRanks, CountTheMemoryOfGroupsAndLinks) {
  const JobOutcome outcome = run(3, fmt::format("{} memory 3", kProgram));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("bytes are counted"));
}

// Each schedule once at least, in random layouts of up to eight ranks; in the fast set of up to four, and every other
// one.
TEST_F(NcclRanks, TrainWithTheBitsOfThreads) {
  const int most_ranks = is_fast_set() ? 4 : 8;
  std::set<std::string> schedules;
  for (int seed = 1; seed <= 120 && schedules.size() < pipeline::kScheduleKinds.size(); ++seed) {
    const Layout layout = layout_of(seed);
    if (layout.stages < 2 || layout.ranks > most_ranks || !schedules.insert(layout.schedule).second) continue;
    if (!has_its_turn(schedules.size(), 2)) continue;
    const std::string words = fmt::format("{} train {}", kProgram, seed);
    const Outcome threads = ChildProgram({"bash", "-c", "exec " + words}).wait();
    ASSERT_EQ(threads.exit_code, 0) << threads.errors;
    const JobOutcome processes = run(layout.ranks, words);
    ASSERT_EQ(processes.exit_code, 0) << "seed " << seed << ", " << layout.ranks << " ranks\n" << processes.errors;
    EXPECT_EQ(lines_of(processes.output), lines_of(threads.output)) << "seed " << seed << ", " << layout.schedule;
  }
  EXPECT_EQ(schedules.size(), pipeline::kScheduleKinds.size());
}

// Ranks as threads, whose devices' work comes late: no wait between streams is missing.
TEST(LateStreams, TrainWithTheBitsOfWorkThatIsDoneAtOnce) {
  for (const int seed : {2, 11}) {
    const std::string words = fmt::format("exec {} train {}", TERATRON_NCCL_PROGRAM, seed);
    const Outcome at_once = ChildProgram({"bash", "-c", words}).wait(kLongest);
    const Outcome late = ChildProgram({"bash", "-c", words}, {"EMULATED_GPU=late"}).wait(kLongest);
    ASSERT_EQ(late.exit_code, 0) << late.errors;
    EXPECT_EQ(late.output, at_once.output) << "seed " << seed;
  }
}

// In the middle of a step, while the others' devices wait for messages of its.
TEST_F(NcclRanks, ARankThatFailsWithinAStepSaysWhyAndEndsAll) {
  const JobOutcome outcome = run(4, fmt::format("{} lose 0 {} 0", kProgram, kFailing));
  expect_lost(outcome, "is lost: this rank fails in its attention, as asked");
  EXPECT_THAT(outcome.errors_of_rank[kFailing], HasSubstr("error: this rank fails in its attention, as asked"));
}

TEST_F(NcclRanks, ARankThatIsKilledWithinAStepEndsAll) {
  expect_lost(run(4, fmt::format("{} lose 0 {} 9", kProgram, kFailing)), "its process is gone");
}

TEST_F(NcclRanks, ACallThatFailsIsTheRanksFailure) {
  const JobOutcome outcome = run(4, fmt::format("{} train 0", kProgram), "FAKE_NCCL_FAIL_CALL=19", kFailing);
  expect_lost(outcome, "NCCL 2.28.9 failed: an exchange: unhandled system error");
}

// Nobody fails, and every rank would wait for ever: NCCL says it to the ends of the link, and nothing else does.
TEST_F(NcclRanks, ALinkThatBreaksIsTheFailureOfTheRankThatSeesIt) {
  const JobOutcome outcome = run(4, fmt::format("{} train 0", kProgram), "FAKE_NCCL_BREAK_AFTER=50", kFailing);
  expect_lost(outcome, "NCCL 2.28.9 failed: an exchange that was under way: unhandled system error");
}

}  // namespace
}  // namespace teratron::testing
