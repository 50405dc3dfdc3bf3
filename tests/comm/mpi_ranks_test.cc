// Ranks as processes under mpirun: every collective exact, and a rank that is lost ends the job with its name. The
// ranks are those of tests/comm/mpi/program.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/core_share.h"
#include "comm/mpi/mpirun.h"

namespace teratron {
namespace {

using ::testing::AllOf;
using testing::errors_of_rank;
using ::testing::HasSubstr;
using testing::MpirunProgram;
using testing::Outcome;
using Words = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

class MpiRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = testing::why_no_mpirun(); !reason.empty()) GTEST_SKIP() << reason;
  }
  static Outcome run(int ranks, Words arguments) {
    arguments.insert(arguments.begin(), TERATRON_COMM_PROGRAM);
    return MpirunProgram(ranks, arguments).wait(std::chrono::seconds(300));
  }
  static void expect_exact(int ranks) {
    const Outcome outcome = run(ranks, {"check", std::to_string(ranks)});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, HasSubstr(std::to_string(ranks) + " mpirun ranks are exact"));
  }
  // Of 3 ranks, `lost` takes `signal` (0: throws). Every other one must tell why, where and in what; soon.
  static void expect_told(int lost, int signal, const std::string& reason) {
    const auto start = Clock::now();
    const Outcome outcome = run(3, {"lose", "3", std::to_string(lost), std::to_string(signal)});
    // With the time that mpirun and the program take to come so far, which is long where the machine is busy.
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(30));
    EXPECT_NE(outcome.exit_code, 0);
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == lost) continue;
      const std::string told = errors_of_rank(outcome.errors, rank);
      EXPECT_THAT(told, AllOf(HasSubstr("rank " + std::to_string(lost) + " on host "), HasSubstr(reason),
                              HasSubstr("it was last known to be in: iteration 100 of the test")))
          << outcome.errors;
      const std::size_t waited = told.find("(waited ");
      ASSERT_NE(waited, told.npos) << told;
      EXPECT_LT(std::stod(told.substr(waited + 8)), 10.0);
    }
  }
};

TEST_F(MpiRanks, TwoAreExact) { expect_exact(2); }
TEST_F(MpiRanks, ThreeAreExact) { expect_exact(3); }
TEST_F(MpiRanks, FourAreExact) { expect_exact(4); }

TEST_F(MpiRanks, ARankThatIsKilledIsNamedByTheOthers) { expect_told(1, SIGKILL, "its process is gone"); }
TEST_F(MpiRanks, TheFirstRankThatIsKilledIsNamedByTheOthers) { expect_told(0, SIGKILL, "its process is gone"); }
TEST_F(MpiRanks, ARankThatIsStoppedIsNamedByTheOthers) { expect_told(2, SIGSTOP, "nothing was heard of it"); }
TEST_F(MpiRanks, TheFirstRankThatIsStoppedIsNamedByTheOthers) { expect_told(0, SIGSTOP, "nothing was heard of it"); }
TEST_F(MpiRanks, ARankThatFailsIsNamedWithItsReason) { expect_told(1, 0, "this rank was told to fail"); }

TEST_F(MpiRanks, ARankThatNeverAsksWhoIsLostIsEndedWithTheMessage) {
  const Outcome outcome = run(2, {"compute", "2", "1", std::to_string(SIGKILL)});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(errors_of_rank(outcome.errors, 0), HasSubstr("error: rank 1 on host ")) << outcome.errors;
}

TEST_F(MpiRanks, ARankThatCannotLeaveIsEndedWithTheMessage) {
  const Outcome outcome = run(2, {"linger", "2", "1", std::to_string(SIGSTOP)});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(errors_of_rank(outcome.errors, 0), HasSubstr("error: rank 1 on host ")) << outcome.errors;
}

TEST_F(MpiRanks, AnotherNumberOfProcessesThanRanksIsRefused) {
  const Outcome outcome = run(2, {"check", "3"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("mpirun started 2 processes, but the layout needs 3 ranks"));
}

TEST_F(MpiRanks, TheExitCodeOfAProcessIsThatOfTheJob) {
  for (const char* const code : {"0", "1", "3"}) {
    EXPECT_EQ(run(2, {"leave", "2", code}).exit_code, std::stoi(code));
  }
}

TEST_F(MpiRanks, AreExactBetweenHosts) {
  const Outcome outcome =
      testing::SeveralHostsProgram(3, {TERATRON_COMM_PROGRAM, "check", "3"}).wait(std::chrono::seconds(300));
  if (outcome.exit_code == testing::SeveralHostsProgram::kImpossible) GTEST_SKIP() << outcome.errors;
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("3 mpirun ranks are exact"));
}

TEST_F(MpiRanks, ARankOfAnotherHostThatIsKilledIsNamedWithItsHost) {
  const Outcome outcome =
      testing::SeveralHostsProgram(3, {TERATRON_COMM_PROGRAM, "lose", "3", "1", "9"}).wait(std::chrono::seconds(60));
  if (outcome.exit_code == testing::SeveralHostsProgram::kImpossible) GTEST_SKIP() << outcome.errors;
  EXPECT_NE(outcome.exit_code, 0);
  for (const int rank : {0, 2}) {
    EXPECT_THAT(errors_of_rank(outcome.errors, rank),
                AllOf(HasSubstr("rank 1 on host tt"), HasSubstr("-2 is lost: its process is gone")))
        << outcome.errors;
  }
}

TEST(CoreShare, EveryCoreGoesToOneOfTheProcessesThatMayUseIt) {
  using Cores = std::vector<std::vector<int>>;
  const auto shares = [](const Cores& cores) {
    std::vector<int> result;
    for (std::size_t process = 0; process < cores.size(); ++process) result.push_back(core_share(cores, process));
    return result;
  };
  EXPECT_EQ(shares({{0, 1, 2, 3, 4}}), (std::vector<int>{5}));
  EXPECT_EQ(shares({{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}}), (std::vector<int>{3, 2}));
  EXPECT_EQ(shares({{0, 1}, {2, 3}}), (std::vector<int>{2, 2}));    // bound by mpirun
  EXPECT_EQ(shares({{0, 1}, {0}}), (std::vector<int>{1, 1}));       // the first can give way
  EXPECT_EQ(shares({{0}, {0}, {0}}), (std::vector<int>{1, 1, 1}));  // fewer cores than processes
  EXPECT_EQ(shares({{0, 1, 2, 3}, {0, 1}, {2, 3}}), (std::vector<int>{2, 1, 1}));
  EXPECT_EQ(shares({{}, {7}}), (std::vector<int>{1, 1}));  // a system that does not tell
}

TEST(CoreShare, CoresSurviveAsText) {
  for (const std::vector<int>& cores : {std::vector<int>{}, {3}, {0, 1, 17, 1023}}) {
    EXPECT_EQ(cores_from_text(to_text(cores)), cores);
  }
  EXPECT_FALSE(own_cores().empty());
}

}  // namespace
}  // namespace teratron
