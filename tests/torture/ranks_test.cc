// Ranks of mpirun that are killed, stopped, or cut off while they train: the job ends in time, names the rank, and goes
// on with the bits of one that never stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "cli/tiny_training.h"
#include "comm/process/launched_job.h"
#include "torture/disk.h"

namespace teratron::torture {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::JobOutcome;
using testing::with;
using testing::Words;
using Clock = std::chrono::steady_clock;

class LostRanksUnderMpirun : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = testing::why_no(testing::LaunchedBy::kMpirun); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }

  Words training(const Words& more) const {
    return with({TERATRON_BINARY},
                training_.command(with({"--tp", "2", "--lr-decay-style", "constant", "--save-interval", "5"}, more)));
  }
  Words endless() const {
    return training({"--save", training_.path("run"), "--keep-last", "2", "--train-iters", "1000000"});
  }

  static void wait_until(const std::string& what, const std::function<bool()>& happens) {
    for (const auto end = Clock::now() + seconds(60); !happens();) {
      if (Clock::now() > end) throw std::runtime_error("a minute without " + what);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  std::int64_t saved() const {
    const fs::path tracker = fs::path(training_.path("run")) / "latest_checkpointed_iteration.txt";
    return fs::exists(tracker) ? std::stoll(read_file(tracker)) : 0;
  }

  void expect_goes_on_bit_for_bit() const {
    const std::string end = std::to_string((saved() / 5 + 1) * 5);
    const auto checkpoint = [&](const std::string& run, const Words& more) {
      const testing::Outcome outcome =
          testing::ChildProgram(training(with({"--train-iters", end, "--save", training_.path(run)}, more))).wait();
      EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
      const std::string name = std::string(7 - end.size(), '0') + end;
      Tree tree = read_tree(fs::path(training_.path(run)) / ("iter_" + name));
      for (const char* with_paths : {"config.toml", "checkpoint.json"}) tree.erase(with_paths);
      return tree;
    };
    EXPECT_EQ(checkpoint("run", {"--load", training_.path("run")}), checkpoint("straight", {}));
  }

  const testing::TinyTraining training_;
};

TEST_F(LostRanksUnderMpirun, OneThatIsKilledOrStoppedIsNamedAndTheRunGoesOn) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    fs::remove_all(training_.path("run"));
    fs::remove_all(training_.path("straight"));
    const auto job = testing::launch(testing::LaunchedBy::kMpirun, 2, endless());
    wait_until("a checkpoint", [&] { return saved() > 0; });
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // heartbeats have said what the ranks do
    const pid_t rank = job->process_of(1);
    ASSERT_NE(rank, 0);
    ::kill(rank, signal);
    const auto began = Clock::now();
    const JobOutcome outcome = job->wait(seconds(60));
    EXPECT_LT(Clock::now() - began, seconds(15));
    EXPECT_NE(outcome.exit_code, 0);
    if (signal == SIGSTOP) {  // else mpirun's exit code is that of the killed rank
      EXPECT_EQ(outcome.exit_code, 3) << outcome.errors;
    }
    const char* const reason = signal == SIGKILL ? "its process is gone" : "it sent no heartbeat";
    EXPECT_THAT(outcome.errors_of_rank[0],
                AllOf(HasSubstr("error: rank 1 on host "), HasSubstr(reason), HasSubstr(" of iteration ")))
        << outcome.errors;
    expect_goes_on_bit_for_bit();
  }
}

// mpirun ends its own part on the other host before it ends itself, so the network comes back when the ranks have
// ended.
TEST_F(LostRanksUnderMpirun, OneWhoseHostIsCutOffIsNamedAndTheRunGoesOn) {
  testing::ChildProgram job(
      with({TERATRON_SOURCE_DIR "/tests/comm/process/on-several-hosts", "mpirun", "2"}, endless()),
      testing::mpirun_environment());
  wait_until("a checkpoint", [&] { return saved() > 0 || job.has_ended(); });
  if (job.has_ended()) {
    const testing::Outcome outcome = job.wait();
    ASSERT_EQ(outcome.exit_code, testing::kNoSeveralHosts) << outcome.errors;
    GTEST_SKIP() << outcome.errors;
  }
  const auto turn_link = [&](const char* state) {
    const std::string bridge = "tt" + std::to_string(job.pid()) + "-bridge";  // the script's name for it
    EXPECT_EQ(testing::ChildProgram({"ip", "-n", bridge, "link", "set", "port2", state}).wait().exit_code, 0);
  };
  const auto began = Clock::now();
  turn_link("down");
  wait_until("the end of the first rank", [&] { return job.errors_so_far().find("error: ") != std::string::npos; });
  EXPECT_LT(Clock::now() - began, seconds(10));
  turn_link("up");
  const JobOutcome outcome = testing::with_ranks(job.wait(seconds(60)), 2);
  EXPECT_EQ(outcome.exit_code, 3) << outcome.errors;
  EXPECT_THAT(outcome.errors_of_rank[0], AllOf(HasSubstr("error: rank 1 on host "), HasSubstr("it sent no heartbeat")))
      << outcome.errors;
  expect_goes_on_bit_for_bit();
}

}  // namespace
}  // namespace teratron::torture
