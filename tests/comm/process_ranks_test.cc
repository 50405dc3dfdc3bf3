// Ranks as processes under each launcher: every exchange exact, and a rank that is lost ends the job with its name.
// The ranks are those of tests/comm/process/program.cc.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/process/launched_job.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class ProcessRanks : public ::testing::TestWithParam<LaunchedBy> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
  static JobOutcome run(int ranks, Words arguments, const std::string& program = TERATRON_COMM_PROGRAM) {
    arguments.insert(arguments.begin(), program);
    return launch(GetParam(), ranks, arguments)->wait(std::chrono::seconds(300));
  }
  static JobOutcome run_with_start_timeout(const std::string& timeout, int ranks, const Words& arguments) {
    std::string line = "TERATRON_START_TIMEOUT=" + timeout + " exec " TERATRON_COMM_PROGRAM;
    for (const std::string& argument : arguments) line += " " + argument;
    return launch(GetParam(), ranks, {"bash", "-c", line})->wait(std::chrono::seconds(100));
  }
  static JobOutcome run_watched(int limit, int ranks, const std::string& arguments) {
    return launch(GetParam(), ranks,
                  {"bash", "-c", fmt::format("WATCHDOG={} exec {} {}", limit, TERATRON_COMM_PROGRAM, arguments)})
        ->wait(std::chrono::seconds(60));
  }
  static std::string exact(int ranks) { return std::to_string(ranks) + " ranks of " + name_of(GetParam()); }
  // By address there is nothing to move tensors here, so hosts alone exchange.
  static Words exact_program(int ranks) {
    return {GetParam() == LaunchedBy::kMpirun ? "check" : "exchange", std::to_string(ranks)};
  }
  static void expect_exact(int ranks) {
    const JobOutcome outcome = run(ranks, exact_program(ranks));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, AllOf(HasSubstr(exact(ranks)), HasSubstr(" are exact")));
  }
  // Rank `lost` of 3 takes `signal` (0: throws). Every other one must report its host, its activity and the reason. A
  // process that is gone and is not noticed at once counts as silent, which is another reason.
  static void expect_told(int lost, int signal, const std::string& reason) {
    const JobOutcome outcome = run(3, {"lose", "3", std::to_string(lost), std::to_string(signal)});
    EXPECT_NE(outcome.exit_code, 0);
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == lost) continue;
      EXPECT_THAT(outcome.errors_of_rank[static_cast<std::size_t>(rank)],
                  AllOf(HasSubstr("rank " + std::to_string(lost) + " on host "), HasSubstr(reason),
                        HasSubstr("it was last known to be in: the test of iteration 100")))
          << outcome.errors;
    }
  }
};

TEST_P(ProcessRanks, TwoAreExact) { expect_exact(2); }
TEST_P(ProcessRanks, ThreeAreExact) { expect_exact(3); }
TEST_P(ProcessRanks, FourAreExact) { expect_exact(4); }

// They share one device and have no channels, so their tensors go through the host, which only MPI can do.
TEST_P(ProcessRanks, OnAnEmulatedGpuAreExactByMpiAloneAndElseRefused) {
  const std::string program = TERATRON_COMM_GPU_PROGRAM;
  if (program.empty()) GTEST_SKIP() << "sanitizers do not understand the emulated GPU";
  const JobOutcome outcome = run(3, {"check", "3"}, program);
  if (GetParam() == LaunchedBy::kMpirun) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return;
  }
  EXPECT_EQ(outcome.exit_code, 3);
  for (const std::string& errors : outcome.errors_of_rank) {
    EXPECT_THAT(errors, HasSubstr("error: these 3 processes cannot exchange the memory of their GPUs"))
        << outcome.errors;
  }
}

TEST_P(ProcessRanks, WithTensorsOnTheHostAreForMpi) {
  if (GetParam() == LaunchedBy::kMpirun) return;
  const JobOutcome outcome = run(2, {"check", "2"});
  EXPECT_EQ(outcome.exit_code, 2);
  for (const std::string& errors : outcome.errors_of_rank) {
    EXPECT_THAT(errors, AllOf(HasSubstr("which is for GPUs"), HasSubstr("mpirun -n 2 teratron"), HasSubstr("srun")));
  }
}

TEST_P(ProcessRanks, ARankThatIsKilledIsNamedByTheOthers) { expect_told(1, SIGKILL, "its process is gone"); }
TEST_P(ProcessRanks, TheFirstRankThatIsKilledIsNamedByTheOthers) { expect_told(0, SIGKILL, "its process is gone"); }
TEST_P(ProcessRanks, ARankThatIsStoppedIsNamedByTheOthers) { expect_told(2, SIGSTOP, "it sent no heartbeat"); }
TEST_P(ProcessRanks, TheFirstRankThatIsStoppedIsNamedByTheOthers) { expect_told(0, SIGSTOP, "it sent no heartbeat"); }
TEST_P(ProcessRanks, ARankThatFailsIsNamedWithItsReason) { expect_told(1, 0, "this rank was told to fail"); }

TEST_P(ProcessRanks, ARankThatComputesForEverIsNamedWithThePlacesOfAll) {
  for (const int standing : {0, 1}) {
    const JobOutcome outcome = run_watched(2, 3, fmt::format("stand 3 {} 0", standing));
    EXPECT_EQ(outcome.exit_code, 3);
    for (const std::string& errors : outcome.errors_of_rank) {
      EXPECT_THAT(errors, AllOf(HasSubstr(fmt::format("rank {} on host ", standing)),
                                HasSubstr("is lost: it has made no progress for 2 seconds"),
                                HasSubstr("it was last known to be in: the test of iteration 100")))
          << outcome.errors;
    }
    EXPECT_THAT(outcome.errors_of_rank[0],  // which looks
                HasSubstr("the test of iteration 101, in host exchange of ranks 0, 1, 2; its last progress was "))
        << outcome.errors;
  }
}

TEST_P(ProcessRanks, ARankThatIsStoppedIsNamedWithinTheTimeOfTheWatchdog) {
  const JobOutcome outcome = run_watched(4, 3, fmt::format("lose 3 2 {}", SIGSTOP));
  EXPECT_NE(outcome.exit_code, 0);
  for (const int rank : {0, 1}) {
    EXPECT_THAT(outcome.errors_of_rank[static_cast<std::size_t>(rank)],
                AllOf(HasSubstr("rank 2 on host "), HasSubstr("it sent no heartbeat")))
        << outcome.errors;
  }
}

TEST(ThreadWatch, ARankThatComputesForEverIsNamedWithThePlacesOfAll) {
  for (const int ranks : {1, 3}) {
    const Outcome outcome =
        ChildProgram({TERATRON_COMM_PROGRAM, "stand", std::to_string(ranks), "0", "0"}, {"WATCHDOG=1"}).wait();
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.errors,
                AllOf(HasSubstr("error: rank 0 on host "), HasSubstr("it has made no progress for 1 seconds"),
                      HasSubstr("it was last known to be in: the test of iteration 100")));
    if (ranks == 1) continue;
    EXPECT_THAT(outcome.errors,
                HasSubstr("the test of iteration 101, in host exchange of ranks 0, 1, 2; its last progress was "));
  }
}

TEST_P(ProcessRanks, ARankThatNeverAsksWhoIsLostIsEndedWithTheMessage) {
  const JobOutcome outcome = run(2, {"compute", "2", "1", std::to_string(SIGKILL)});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.errors_of_rank[0], HasSubstr("error: rank 1 on host ")) << outcome.errors;
}

TEST_P(ProcessRanks, ARankThatCannotLeaveIsEndedWithTheMessage) {
  const JobOutcome outcome = run(2, {"linger", "2", "1", std::to_string(SIGSTOP)});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.errors_of_rank[0], HasSubstr("error: rank 1 on host ")) << outcome.errors;
}

TEST_P(ProcessRanks, ARankThatEndsBeforeTheyMeetKeepsNobodyWaiting) {
  for (const char* const rank : {"0", "1"}) {
    const JobOutcome outcome = run(2, {"desert", "2", rank, "2"});
    EXPECT_EQ(outcome.exit_code, 2);
    if (GetParam() == LaunchedBy::kMpirun) continue;  // which ends the others itself
    EXPECT_THAT(outcome.errors, AllOf(HasSubstr("rank " + std::string(rank) + " on host "),
                                      HasSubstr("it ended with exit code 2, and its own output says why")));
  }
}

TEST_P(ProcessRanks, ARankWhoseConnectionsBreakIsNamed) {
  if (GetParam() == LaunchedBy::kMpirun) GTEST_SKIP() << "the rank would cut itself off from mpirun, too";
  expect_told(1, -1, "its process is gone");
}

// The last rank never comes.
TEST_P(ProcessRanks, ARankThatNeverComesIsWaitedForAndNamed) {
  if (GetParam() == LaunchedBy::kMpirun) {
    const JobOutcome outcome = run_with_start_timeout("6", 2, {"meet", "2", "-1", "0"});
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_THAT(outcome.errors_of_rank[0],
                AllOf(HasSubstr("waiting in MPI_Init for the other processes (5 s)"),
                      HasSubstr("not all processes of this MPI job came to MPI_Init within 6 seconds")));
    return;
  }
  const JobOutcome outcome = run_with_start_timeout("7", 3, {"meet", "3", "-1", "0"});
  EXPECT_EQ(outcome.exit_code, 3);
  for (const int rank : {0, 1}) {
    EXPECT_THAT(outcome.errors_of_rank[static_cast<std::size_t>(rank)],
                AllOf(HasSubstr("waiting for rank 2 of 3 at 127.0.0.1:"), HasSubstr(" (5 s)"),
                      HasSubstr("error: not all of the 3 processes came"), HasSubstr(": rank 2 missing")));
  }
}

TEST_P(ProcessRanks, ARankThatIsLostBeforeAllHaveMetIsNamedByThoseThatWait) {
  if (GetParam() == LaunchedBy::kMpirun) GTEST_SKIP() << "MPI_Init lets no rank begin before all have come";
  for (const int signal : {SIGKILL, SIGSTOP}) {
    for (const int lost : {0, 1}) {
      const JobOutcome outcome = run(4, {"meet", "4", std::to_string(lost), std::to_string(signal)});
      for (const int rank : {1 - lost, 2}) {
        const std::string told = outcome.errors_of_rank[static_cast<std::size_t>(rank)];
        EXPECT_THAT(told, AllOf(HasSubstr(fmt::format("rank {} on host ", lost)),
                                HasSubstr(signal == SIGKILL ? "its process is gone" : "it sent no heartbeat"),
                                HasSubstr("the start, before all ranks had met")));
      }
    }
  }
}

TEST_P(ProcessRanks, AnotherNumberOfProcessesThanRanksIsRefused) {
  const JobOutcome outcome = run(2, exact_program(3));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors,
              AllOf(HasSubstr(name_of(GetParam())), HasSubstr(" started 2 processes, but the layout needs 3 ranks")));
}

TEST_P(ProcessRanks, TheExitCodeOfAProcessIsThatOfTheJob) {
  for (const char* const code : {"0", "1", "3"}) {
    EXPECT_EQ(run(2, {"leave", "2", code}).exit_code, std::stoi(code));
  }
}

TEST_P(ProcessRanks, AreExactBetweenHosts) {
  Words program = exact_program(3);
  program.insert(program.begin(), TERATRON_COMM_PROGRAM);
  const JobOutcome outcome = run_on_several_hosts(GetParam(), 3, program, std::chrono::seconds(300));
  if (outcome.exit_code == kNoSeveralHosts) GTEST_SKIP() << outcome.errors;
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr(exact(3)));
}

TEST_P(ProcessRanks, ARankOfAnotherHostThatIsKilledIsNamedWithItsHost) {
  const JobOutcome outcome =
      run_on_several_hosts(GetParam(), 3, {TERATRON_COMM_PROGRAM, "lose", "3", "1", "9"}, std::chrono::seconds(60));
  if (outcome.exit_code == kNoSeveralHosts) GTEST_SKIP() << outcome.errors;
  EXPECT_NE(outcome.exit_code, 0);
  for (const int rank : {0, 2}) {
    EXPECT_THAT(outcome.errors_of_rank[static_cast<std::size_t>(rank)],
                AllOf(HasSubstr("rank 1 on host tt"), HasSubstr("-2 is lost: its process is gone")))
        << outcome.errors;
  }
}

// mpirun runs on the first host, and ends the job as soon as that host's rank has reported.
TEST_P(ProcessRanks, ARankWhoseHostIsCutOffIsNamed) {
  const bool is_mpi = GetParam() == LaunchedBy::kMpirun;
  for (const int lost : is_mpi ? std::vector<int>{1} : std::vector<int>{0, 1}) {
    const JobOutcome outcome = run_on_several_hosts(
        GetParam(), 3, {TERATRON_COMM_PROGRAM, "lose", "3", std::to_string(lost), "-2"}, std::chrono::seconds(90));
    if (outcome.exit_code == kNoSeveralHosts) GTEST_SKIP() << outcome.errors;
    EXPECT_NE(outcome.exit_code, 0);
    for (const int rank : is_mpi ? std::vector<int>{0} : std::vector<int>{1 - lost, 2}) {
      EXPECT_THAT(outcome.errors_of_rank[static_cast<std::size_t>(rank)],
                  HasSubstr(fmt::format("is lost: it sent no heartbeat for {} seconds", lost == 0 ? 7 : 5)))
          << outcome.errors;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mpirun, ProcessRanks, ::testing::Values(LaunchedBy::kMpirun));
INSTANTIATE_TEST_SUITE_P(Address, ProcessRanks, ::testing::Values(LaunchedBy::kAddress));

}  // namespace
}  // namespace teratron::testing
