// The supervisor, with shell scripts as its children: which ends it starts again after, from where, and how often.
#include "run/supervisor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "base/temporary_folder.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SupervisorTest : public ::testing::Test {
 protected:
  // The script has the folder of --save as its working folder and in $n the number of its start, from 1 on.
  int run(const std::string& script, std::int64_t restarts = 3) {
    const std::string whole =
        fmt::format("cd '{}'; echo \"$@\" >> starts; n=$(wc -l < starts); {}", folder_.path().string(), script);
    return supervise({.restarts = restarts,
                      .save = folder_.path(),
                      .start = {"bash", "-c", whole, "script"},
                      .resume = {"--load", "SAVE"},
                      .exit_minutes = exit_minutes_,
                      .say = [this](const std::string& line) { lines_.push_back(line); }});
  }
  std::vector<std::string> starts() const {
    std::ifstream file(folder_.path() / "starts");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  // An update in metrics.jsonl, and a checkpoint.
  static constexpr std::string_view kUpdate = "echo \"{\\\"iteration\\\":$n}\" >> metrics.jsonl; ";
  static constexpr std::string_view kSave = "echo $n > latest_checkpointed_iteration.txt; ";

  const TemporaryFolder folder_;
  double exit_minutes_ = 0;
  std::vector<std::string> lines_;
};

TEST_F(SupervisorTest, PassesEndsInGoodOrderAndWrongInputOn) {
  for (const int code : {0, 1, 2, 128 + SIGTERM, 128 + SIGUSR1, 141}) {
    EXPECT_EQ(run(fmt::format("exit {}", code)), code);
    EXPECT_TRUE(lines_.empty());
  }
  EXPECT_EQ(run("kill -TERM $$"), 128 + SIGTERM);  // before it could listen
  EXPECT_TRUE(lines_.empty());
}

TEST_F(SupervisorTest, StartsAgainWhatDiedUntilItIsDone) {
  for (const std::string death : {"exit 3", "kill -KILL $$", "kill -SEGV $$", "exit 137", "exit 139"}) {
    std::filesystem::remove(folder_.path() / "starts");
    lines_.clear();
    EXPECT_EQ(run(std::string(kUpdate) + "[ $n = 3 ] || " + death), 0) << death;
    EXPECT_EQ(starts().size(), 3U) << death;
    EXPECT_EQ(lines_.size(), 2U) << death;
  }
}

TEST_F(SupervisorTest, ItIsSaidHowTheRunEndedAndWhereItBegins) {
  EXPECT_EQ(run(std::string(kUpdate) + "[ $n = 1 ] || " + std::string(kSave) + "kill -KILL $$", 2), 128 + SIGKILL);
  EXPECT_THAT(starts(), ElementsAre("", "", "--load SAVE"));
  ASSERT_EQ(lines_.size(), 3U);
  EXPECT_EQ(lines_[0], "the run ended by SIGKILL; it starts again as it began (restart 1 of 2)");
  EXPECT_EQ(lines_[1], "the run ended by SIGKILL; it starts again from the checkpoint of iteration 2 (restart 2 of 2)");
  EXPECT_EQ(lines_[2], "the run ended by SIGKILL; it was started again 2 times, and no more are asked for");
}

// The folder of a run that is gone on with: its first start has flags of its own.
TEST_F(SupervisorTest, ACheckpointFromBeforeItsTimeDoesNotChangeTheStart) {
  write_file_atomically(folder_.path() / "latest_checkpointed_iteration.txt", "100\n");
  EXPECT_EQ(run("[ $n = 1 ] && exit 3; exit 0"), 0);
  EXPECT_THAT(starts(), ElementsAre("", ""));
}

// By --load DIR --iteration 50, where 100 was the current one: the checkpoints after it are made anew.
TEST_F(SupervisorTest, ARunThatWentBackGoesOnFromWhatItSavedSince) {
  const std::filesystem::path tracker = folder_.path() / "latest_checkpointed_iteration.txt";
  const std::string go_back = "[ $n = 1 ] && echo 50 > latest_checkpointed_iteration.txt; ",
                    update = "echo '{\"iteration\":60}' >> metrics.jsonl; ";
  write_file_atomically(tracker, "100\n");
  EXPECT_EQ(run(go_back + update + "[ $n = 1 ] && echo 100 > latest_checkpointed_iteration.txt && exit 3; exit 0"), 0);
  EXPECT_THAT(starts(), ElementsAre("", "--load SAVE"));
  EXPECT_THAT(lines_.at(0), HasSubstr("from the checkpoint of iteration 100"));
  // Its first start made updates, the second none.
  std::filesystem::remove(folder_.path() / "starts");
  write_file_atomically(tracker, "100\n");
  EXPECT_EQ(run("[ $n = 2 ] && exit 3; " + go_back + update + "[ $n = 1 ] && exit 3; exit 0"), 0);
  EXPECT_EQ(starts().size(), 3U);
}

// The time of --exit-duration-in-mins is the command's, not that of its last start.
TEST_F(SupervisorTest, ARestartGetsTheMinutesThatAreLeft) {
  exit_minutes_ = 10;
  EXPECT_EQ(run(std::string(kUpdate) + "[ $n = 1 ] || exit 0; sleep 0.6; exit 3"), 0);
  ASSERT_EQ(starts().size(), 2U);
  EXPECT_EQ(starts()[0], "");
  const std::string flag = "--exit-duration-in-mins=";
  ASSERT_THAT(starts()[1], StartsWith(flag));
  const double left = std::stod(starts()[1].substr(flag.size()));
  EXPECT_LT(left, 9.991);
  EXPECT_GT(left, 5);
  std::filesystem::remove(folder_.path() / "starts");
  exit_minutes_ = 1e-6;
  EXPECT_EQ(run(std::string(kUpdate) + "[ $n = 1 ] || exit 0; exit 3"), 0);
  EXPECT_EQ(starts()[1], flag + "0.001");
}

TEST_F(SupervisorTest, TwoStartsThatDieBeforeTheirFirstUpdateAreTheLast) {
  EXPECT_EQ(run("exit 3", 100), 3);
  EXPECT_EQ(starts().size(), 2U);
  ASSERT_EQ(lines_.size(), 2U);
  EXPECT_THAT(lines_[1],
              AllOf(HasSubstr("before its first update as the time before"), HasSubstr("not started again")));
}

TEST_F(SupervisorTest, OldMetricsAreNoUpdates) {
  write_file_atomically(folder_.path() / "metrics.jsonl", "{\"iteration\":7}\n");
  EXPECT_EQ(run("exit 3", 100), 3);
  EXPECT_EQ(starts().size(), 2U);
}

// A signal to the whole group of the supervisor would else reach its child twice.
TEST_F(SupervisorTest, AChildLeadsAGroupOfItsOwn) {
  EXPECT_EQ(run("stat=($(< /proc/$$/stat)); [ ${stat[4]} = $$ ]"), 0);
}

TEST_F(SupervisorTest, AProgramThatIsNotThereIsOneError) {
  EXPECT_THAT(message_of<EnvironmentError>([&] {
                supervise({.restarts = 3, .save = folder_.path(), .start = {"no-such-launcher", "-n", "4"}, .say = {}});
              }),
              HasSubstr("cannot start 'no-such-launcher': No such file"));
}

}  // namespace
}  // namespace teratron::testing
