// Nothing is lost: runs that are asked to end, two runs that save to one folder, runs that diverge, targets that
// are no files. Ranks are threads, and processes of mpirun.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstring>

#include "cli/tiny_training.h"
#include "comm/process/launched_job.h"

namespace teratron::testing {
namespace {

using std::chrono::seconds;
using ::testing::AnyOf;

Words of_binary(const Words& words) { return with({TERATRON_BINARY}, words); }

class NothingLost : public TrainingCommands<> {
 protected:
  Words endless(const std::string& name, const Words& more = {}) const {
    return training_.command(
        with({"--save", path(name), "--train-iters", "1000000", "--lr-decay-style", "constant"}, more));
  }
  // That it was saved after the last update that was written down, and goes on with the bits of a run that never
  // stopped.
  void expect_goes_on(const std::string& name, const Words& layout) const {
    const std::string run = path(name), whole = path(name + "-whole");
    const auto done = static_cast<std::int64_t>(TinyTraining::losses(run).size());
    const std::string tracker = read_file(fs::path(run) / "latest_checkpointed_iteration.txt");
    EXPECT_EQ(std::stoll(tracker), done);
    const Words constant = with({"--lr-decay-style", "constant", "--train-iters", std::to_string(done + 2)}, layout);
    must(training_.command(with(constant, {"--load", run, "--save", run})));
    must(training_.command(with(constant, {"--save", whole})));
    EXPECT_EQ(TinyTraining::losses(run), TinyTraining::losses(whole));
  }
};

TEST_F(NothingLost, ASignalEndsTheRunWithACheckpointAndItsNumber) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    const std::string name = "run" + std::to_string(signal), json = path(name + ".json");
    const Words layout = {"--tp", "2"};
    ChildProgram program(of_binary(endless(name, with(layout, {"--json", json}))));
    TinyTraining::wait_for_update(program, path(name));
    ::kill(program.pid(), signal);
    const Outcome outcome = program.wait(seconds(30));
    EXPECT_EQ(outcome.exit_code, 128 + signal) << outcome.errors;
    EXPECT_THAT(outcome.errors, AllOf(HasSubstr("asked to end"), HasSubstr(": ends after iteration "),
                                      HasSubstr("saved "), Not(HasSubstr("error:"))));
    EXPECT_THAT(Json::parse(read_file(json)).at("ended_by"), AnyOf("SIGINT", "SIGTERM", "SIGUSR1"));
    EXPECT_FALSE(fs::exists(fs::path(path(name)) / "run.lock"));
    expect_goes_on(name, layout);
  }
}

TEST_F(NothingLost, HangingUpEndsNoRunThatNobodyWatches) {
  ChildProgram program(of_binary(endless("run")));
  TinyTraining::wait_for_update(program, path("run"));
  ::kill(program.pid(), SIGHUP);
  const std::size_t before = TinyTraining::losses(path("run")).size();
  wait_until(program, [&] { return TinyTraining::losses(path("run")).size() >= before + 20; });
  EXPECT_FALSE(program.has_ended());
  ::kill(program.pid(), SIGTERM);
  EXPECT_EQ(program.wait(seconds(30)).exit_code, 128 + SIGTERM);
}

class NothingLostUnderMpirun : public NothingLost {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no(LaunchedBy::kMpirun); !reason.empty()) GTEST_SKIP() << reason;
  }
};

// A rank alone gets the signal; mpirun passes SIGUSR1 on to all.
TEST_F(NothingLostUnderMpirun, ASignalToOneRankOrToMpirunEndsAllWithACheckpoint) {
  struct Case {
    std::string name;
    int rank, signal;  // rank -1: mpirun
  };
  for (const Case& c :
       {Case{"last", 3, SIGTERM}, Case{"first", 0, SIGINT}, Case{"second", 1, SIGUSR1}, Case{"mpirun", -1, SIGUSR1}}) {
    const Words layout = {"--tp", "2", "--dp", "2", "--global-batch-size", "4"};
    ChildProgram mpirun(with({TERATRON_MPIRUN, "--oversubscribe", "-n", "4"}, of_binary(endless(c.name, layout))),
                        mpirun_environment());
    TinyTraining::wait_for_update(mpirun, path(c.name));
    const pid_t process = c.rank < 0 ? mpirun.pid() : process_of_mpirun(mpirun.pid(), c.rank);
    ASSERT_NE(process, 0);
    ::kill(process, c.signal);
    const Outcome outcome = mpirun.wait(seconds(60));
    EXPECT_EQ(outcome.exit_code, 128 + c.signal) << c.name << outcome.errors;
    EXPECT_THAT(outcome.errors, AllOf(HasSubstr(": ends after iteration "), HasSubstr("saved "),
                                      Not(HasSubstr("error:")), Not(HasSubstr("MPI_ABORT"))))
        << c.name;
    expect_goes_on(c.name, layout);
  }
}

// The control plane ends a process 0.4 s after SIGTERM where nobody takes care of it, and stops its heartbeat.
TEST_F(NothingLostUnderMpirun, AnUpdateThatTakesSecondsIsFinishedAfterSigterm) {
  const Words layout = {"--tp", "2", "--global-batch-size", "1000"};
  ChildProgram mpirun(with({TERATRON_MPIRUN, "--oversubscribe", "-n", "2"}, of_binary(endless("run", layout))),
                      mpirun_environment());
  TinyTraining::wait_for_update(mpirun, path("run"));
  const pid_t process = process_of_mpirun(mpirun.pid(), 1);
  ASSERT_NE(process, 0);
  const std::size_t before = TinyTraining::losses(path("run")).size();
  ::kill(process, SIGTERM);
  const Outcome outcome = mpirun.wait(seconds(120));
  EXPECT_EQ(outcome.exit_code, 128 + SIGTERM) << outcome.errors;
  EXPECT_LE(TinyTraining::losses(path("run")).size(), before + 2) << "updates are too short for this test";
  EXPECT_THAT(outcome.errors, HasSubstr("saved "));
}

TEST_F(NothingLost, SecondRunThatSavesToAFolderIsRefusedAndTheFirstUntouched) {
  ChildProgram first(of_binary(endless("run", {"--seed", "1", "--save-interval", "5"})));
  const fs::path folder = path("run");
  wait_until(first, [&] { return fs::exists(folder / "latest_checkpointed_iteration.txt"); });
  const std::string config = read_file(folder / "config.toml"), trace = path("trace.json");
  for (const Words& more : {Words{}, Words{"--load", folder.string()}}) {
    EXPECT_THAT(refused(endless("run", with(more, {"--seed", "1", "--trace", trace}))),
                HasSubstr("saves to '" + folder.string() + "' already; wait for its end, end it, or"));
  }
  EXPECT_THAT(refused(endless("run")), HasSubstr("process " + std::to_string(first.pid())));
  EXPECT_EQ(read_file(folder / "config.toml"), config);
  EXPECT_FALSE(fs::exists(trace));
  ::kill(first.pid(), SIGKILL);
  first.wait(seconds(10));
  EXPECT_TRUE(fs::exists(folder / "run.lock"));
  const std::string iterations =
      std::to_string(std::stoll(read_file(folder / "latest_checkpointed_iteration.txt")) + 2);
  must(training_.command({"--load", folder.string(), "--save", folder.string(), "--train-iters", iterations}));
}

// As it was: pairs that begin at once both ended with exit code 0, and their updates were mixed.
TEST_F(NothingLost, PairsThatBeginAtOnceNeverMix) {
  for (int pair = 0; pair < 4; ++pair) {
    const std::string name = "race" + std::to_string(pair);
    const auto start = [&](const char* seed) {
      return std::make_unique<ChildProgram>(
          of_binary(training_.command({"--save", path(name), "--train-iters", "30", "--seed", seed})));
    };
    const auto one = start("1"), other = start("2");
    const Outcome outcomes[] = {one->wait(seconds(60)), other->wait(seconds(60))};
    EXPECT_EQ(outcomes[0].exit_code + outcomes[1].exit_code, 2) << outcomes[0].errors << outcomes[1].errors;
    const std::string winner = outcomes[0].exit_code == 0 ? "1" : "2";
    EXPECT_EQ(TinyTraining::losses(path(name)).size(), 30U);
    EXPECT_THAT(read_file(fs::path(path(name)) / "config.toml"), HasSubstr("seed = " + winner));
  }
}

TEST_F(NothingLost, Fp16ThatDivergesEndsWithAnErrorAndNoJson) {
  const std::string json = path("out.json");
  for (const char* precision : {"--fp16", "--bf16"}) {
    EXPECT_THAT(refused(training_.command({precision, "--initial-loss-scale", "256", "--lr", "1e30", "--clip-grad", "0",
                                           "--save-interval", "1", "--keep-last", "1", "--train-iters", "40", "--json",
                                           json, "--save", path(precision)})),
                HasSubstr("error: training has diverged"));
    EXPECT_FALSE(fs::exists(json));
  }
}

// Updates of milliseconds are reported ten times a second.
TEST_F(NothingLost, UpdatesBeforeAnErrorAreWrittenDown) {
  const std::string records = path("records");
  const std::string errors =
      refused(training_.command({"--lr", "1e30", "--clip-grad", "0", "--train-iters", "40", "--save", path("run"),
                                 "--log-interval", "1", "--tensorboard-dir", records}));
  const std::size_t done = TinyTraining::losses(path("run")).size();
  EXPECT_GT(done, 0U);
  EXPECT_THAT(errors, AllOf(HasSubstr(fmt::format("diverged in iteration {}", done + 1)),
                            HasSubstr(fmt::format("iteration {:>2}/40", done))));
  const std::string events = read_file(fs::directory_iterator(records)->path());
  std::size_t iterations = 0;
  for (std::size_t at = 0; (at = events.find("iteration-time", at)) != std::string::npos; ++at) ++iterations;
  EXPECT_EQ(iterations, done);
}

TEST_F(NothingLost, JsonGoesIntoDevicesAndThroughPipesAndLinks) {
  const Words command = training_.command({"--train-iters", "1", "--json"});
  const auto iterations = [](const std::string& text) { return Json::parse(text).at("iterations"); };
  const std::string pipe = path("pipe"), link = path("link"), target = path("target");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ChildProgram reader({"cat", pipe});
  must(with(command, {pipe}));
  EXPECT_EQ(iterations(reader.wait(seconds(10)).output), 1);
  EXPECT_TRUE(fs::is_fifo(pipe));

  fs::create_symlink(target, link);
  EXPECT_EQ(run_teratron(with(command, {link})).exit_code, 0);
  EXPECT_EQ(iterations(read_file(target)), 1);
  EXPECT_TRUE(fs::is_symlink(link));

  const std::string device = path("null");
  if (::mknod(device.c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0) GTEST_SKIP() << "making a device needs root";
  EXPECT_EQ(run_teratron(with(command, {device})).exit_code, 0);
  EXPECT_TRUE(fs::is_character_file(device));
}

TEST_F(NothingLost, TheCommandEndsAfterItsDuration) {
  const Outcome outcome = must(endless("run", {"--exit-duration-in-mins", "0.02", "--json", "-"}));
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("--exit-duration-in-mins 0.02: ends after"), HasSubstr("saved ")));
  EXPECT_EQ(Json::parse(outcome.output).at("ended_by"), "exit-duration-in-mins");
}

TEST_F(NothingLost, AnExplosionOfTheLossIsWarnedOf) {
  const Outcome outcome = run_teratron(
      training_.command({"--lr", "20", "--clip-grad", "0", "--lr-warmup-iters", "40", "--train-iters", "60"}));
  EXPECT_THAT(outcome.errors, HasSubstr("warning: the loss explodes"));
}

}  // namespace
}  // namespace teratron::testing
