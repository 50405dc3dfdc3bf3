// Runs that are watched and started again: `teratron top` beside a live, an ended and a killed one, and the bits of a
// run whose processes were killed.

#include <fstream>
#include <map>

#include "base/philox.h"
#include "base/pseudo_terminal.h"
#include "cli/tiny_training.h"
#include "comm/process/launched_job.h"
#include "telemetry/live_file.h"

namespace teratron::testing {
namespace {

using std::chrono::milliseconds;

class Supervision : public TrainingCommands<> {
 protected:
  Words command(const std::string& run, const Words& more) const {
    return with({TERATRON_BINARY}, training_.command(with({"--save", path(run)}, more)));
  }
  Json top(const std::string& run) const {
    const Outcome outcome = must({"top", path(run), "--json", "-"});
    return Json::parse(outcome.output, nullptr, /*allow_exceptions=*/false);
  }
  static pid_t only_child(pid_t parent) {
    const std::string id = std::to_string(parent);
    std::ifstream children("/proc/" + id + "/task/" + id + "/children");
    pid_t child = 0;
    children >> child;
    return child;
  }
  // Whether this process of a run has reported an update that it did not begin with.
  bool has_updates(const std::string& run, pid_t process) const {
    const std::string live = "\"process\":" + std::to_string(process) + ",";
    const fs::path state = fs::path(path(run)) / "live.json";
    if (!fs::exists(state) || read_file(state).find(live) == std::string::npos) return false;
    std::int64_t saved = 0, reported = 0;
    std::ifstream(fs::path(path(run)) / "latest_checkpointed_iteration.txt") >> saved;
    std::ifstream metrics(fs::path(path(run)) / "metrics.jsonl");
    for (std::string line; std::getline(metrics, line);) {
      const auto json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (json.is_object()) reported = json.value("iteration", reported);
    }
    return reported > saved;
  }
  static std::map<std::string, std::string> tensors(const fs::path& checkpoint) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(checkpoint)) {
      if (entry.path().extension() == ".safetensors") files[entry.path().filename()] = read_file(entry.path());
    }
    EXPECT_FALSE(files.empty());
    return files;
  }
};

TEST_F(Supervision, TopShowsARunThatLivesThenDies) {
  ChildProgram run(command("run", {"--train-iters", "1000000", "--tp", "2", "--save-interval", "1000000"}));
  const fs::path file = fs::path(path("run")) / "live.json";
  wait_until(run, [&] { return fs::exists(file) && read_file(file).find("\"place\"") != std::string::npos; });
  const Json live = top("run");
  ASSERT_EQ(live.value("state", ""), "lives") << run.errors_so_far();
  EXPECT_EQ(live.at("iterations"), 1000000);
  ASSERT_EQ(live.at("ranks").size(), 2U);
  for (const Json& rank : live.at("ranks")) EXPECT_GT(rank.at("memory_bytes"), 0);
  Outcome text;
  const auto has_a_place = [&] { return text.output.find(" of iteration ") != std::string::npos; };
  // A rank that has just begun has none.
  for (int look = 0; look < 100 && !has_a_place(); ++look) text = run_teratron({"top", path("run")});
  EXPECT_TRUE(has_a_place()) << text.output;
  EXPECT_THAT(text.output, AllOf(HasSubstr("of 1,000,000"), HasSubstr("rank")));

  ::kill(run.pid(), SIGKILL);
  run.wait();
  EXPECT_EQ(top("run").value("state", ""), "gone");
  EXPECT_THAT(run_teratron({"top", path("run")}).output, HasSubstr("was killed, or ended with an error"));
}

TEST_F(Supervision, ARunThatEndsInGoodOrderLeavesNoState) {
  const Outcome done = ChildProgram(command("run", {"--train-iters", "3"})).wait();
  ASSERT_EQ(done.exit_code, 0) << done.errors;
  EXPECT_FALSE(fs::exists(fs::path(path("run")) / "live.json"));
  EXPECT_THAT(refused({"top", path("run")}),
              AllOf(HasSubstr("no run lives in"), HasSubstr("its last checkpoint is of iteration 3")));
}

TEST_F(Supervision, TopRefusesWhatIsNoRunWithOneError) {
  const std::string file = path("live.json");
  EXPECT_THAT(refused({"top", path("none")}), HasSubstr("there is no folder"));
  EXPECT_THAT(refused({"top", path("corpus.txt")}), HasSubstr("there is no folder"));
  EXPECT_THAT(refused({"top", path("")}), AllOf(HasSubstr("no run lives"), HasSubstr("no checkpoint")));
  write_file_atomically(path("run.lock"), "{}");
  EXPECT_THAT(refused({"top", path("")}), HasSubstr("has not come to its updates, or died"));
  for (const std::string text : {"", "garbage", "{\"host\": 3}"}) {
    write_file_atomically(file, text);
    EXPECT_THAT(refused({"top", path("")}), AllOf(HasSubstr("error: "), HasSubstr(file))) << text;
  }
}

// A state that another host wrote long ago, with a terminal's control characters in it.
TEST_F(Supervision, TopSaysThatAStateIsOldAndShowsNoControlCharacters) {
  write_file_atomically(path("live.json"),
                        R"({"host":"\u001b[2Jelsewhere","process":7,"written_at":1e9,"iteration":5,"iterations":9,)"
                        R"("loss":1e300,"tokens_per_second":1e300,"seconds_left":1e300,"ranks":[]})");
  const Outcome outcome = must({"top", path("")});
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("has written nothing for"), Not(HasSubstr("\x1b"))));
}

// A terminal of six rows: the cursor's, below the keys', must be one of them, or the first line is gone.
TEST_F(Supervision, OnATerminalTopFillsTheRowsAndColumnsUntilAKeyASignalOrTheRunsEnd) {
  if (!PseudoTerminal(6, 40).exists()) GTEST_SKIP() << "there are no terminals";
  const auto frame_until = [&](int ranks, bool has_keys, const auto& end, int exit_code) {
    LiveRun state{.host = "elsewhere", .process = 7, .written_at = 1e9, .iteration = 5, .iterations = 9};
    for (int rank = 0; rank < ranks; ++rank)
      state.ranks.push_back({.rank = rank, .host = "elsewhere", .place = "start"});
    EXPECT_TRUE(write_live_file(path(""), state));
    PseudoTerminal terminal(6, 40);
    ChildProgram top({TERATRON_BINARY, "top", path("")}, {"TERM=xterm"}, terminal.path(),
                     has_keys ? terminal.path() : "/dev/null");
    std::string frame = terminal.shown_until("q ends\r\n");
    end(terminal, top);
    EXPECT_EQ(top.wait().exit_code, exit_code);
    std::erase(frame, '\r');
    return frame;
  };
  const auto frame_of = [&](int ranks) {
    const auto type_q = [](const PseudoTerminal& terminal, ChildProgram&) { terminal.type("q"); };
    const std::string frame = frame_until(ranks, true, type_q, 0);
    const std::string_view from_top = "\x1b[H\x1b[J";
    EXPECT_THAT(frame, StartsWith(std::string(from_top) + "process 7 on elsewhere has written"));
    const std::vector<std::string> lines = lines_of(frame.substr(from_top.size()));
    for (const std::string& line : lines) EXPECT_LE(line.size(), 40U) << line;
    EXPECT_LE(lines.size(), 5U) << frame;
    return frame;
  };
  EXPECT_THAT(frame_of(0), Not(HasSubstr("..\n")));
  EXPECT_THAT(frame_of(1), AllOf(HasSubstr(" start\n"), Not(HasSubstr("..\n")))) << "four lines fit";
  EXPECT_THAT(frame_of(2), HasSubstr("\n..\nq ends\n"));
  const auto signalled = [](int signal) { return [=](auto&, ChildProgram& top) { ::kill(top.pid(), signal); }; };
  frame_until(0, false, signalled(SIGINT), 0);
  frame_until(0, false, signalled(SIGTERM), 128 + SIGTERM);
  const auto end_run = [&](PseudoTerminal& terminal, ChildProgram&) {
    fs::remove(path("live.json"));
    terminal.shown_until("the run has ended\r\n");
  };
  frame_until(0, false, end_run, 0);
}

// Killed at random times after an update of its own, each time it is started again.
TEST_F(Supervision, ARunThatWasKilledAgainAndAgainHasTheBitsOfOneThatWasNot) {
  const Words flags = {"--train-iters", "300", "--save-interval", "10", "--json"};
  ASSERT_EQ(ChildProgram(command("whole", with(flags, {path("whole.json")}))).wait().exit_code, 0);
  ChildProgram run(command("killed", with(flags, {path("killed.json"), "--restart-on-failure", "100"})));
  RandomSequence random(RandomStream{.seed = 3});
  pid_t before = 0;
  for (int kills = 0; kills < 4; ++kills) {
    pid_t child = 0;
    wait_until(run, [&] {
      child = only_child(run.pid());
      return child != 0 && child != before && has_updates("killed", child);
    });
    if (run.has_ended()) break;
    if (kills > 0) std::this_thread::sleep_for(milliseconds(random.below(200)));  // at once, or a fast run has ended
    ::kill(child, SIGKILL);
    before = child;
  }
  const Outcome outcome = run.wait();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors,
              AllOf(HasSubstr("the run ended by SIGKILL; it starts again"), HasSubstr("(restart 1 of ")));
  EXPECT_EQ(TinyTraining::losses(path("killed")), TinyTraining::losses(path("whole")));
  EXPECT_EQ(tensors(path("killed") + "/iter_0000300"), tensors(path("whole") + "/iter_0000300"));
  const auto result = [&](const std::string& name) { return Json::parse(read_file(path(name))); };
  EXPECT_EQ(result("killed.json").at("final_loss"), result("whole.json").at("final_loss"));
}

TEST_F(Supervision, ASignalToTheSupervisorEndsTheRunInGoodOrder) {
  ChildProgram run(command("run", {"--train-iters", "1000000", "--restart-on-failure", "3"}));
  wait_until(run, [&] { return fs::exists(fs::path(path("run")) / "live.json"); });
  ::kill(run.pid(), SIGTERM);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.exit_code, 128 + SIGTERM) << outcome.errors;
  EXPECT_TRUE(fs::exists(fs::path(path("run")) / "latest_checkpointed_iteration.txt"));
  EXPECT_THAT(outcome.errors, Not(HasSubstr("starts again")));
}

// As a scheduler or `timeout` sends it.
TEST_F(Supervision, ASignalToTheWholeGroupIsOneToTheRun) {
  for (int time = 0; time < 3; ++time) {
    const std::string name = "run" + std::to_string(time);
    ChildProgram run(command(name, {"--train-iters", "1000000", "--restart-on-failure", "3"}));
    wait_until(run, [&] { return fs::exists(fs::path(path(name)) / "live.json"); });
    ::kill(-run.pid(), SIGINT);
    const Outcome outcome = run.wait();
    EXPECT_EQ(outcome.exit_code, 128 + SIGINT) << outcome.errors;
    EXPECT_TRUE(fs::exists(fs::path(path(name)) / "latest_checkpointed_iteration.txt")) << outcome.errors;
  }
}

// The shell that started the supervisor sees it stop, and lets it go on.
TEST_F(Supervision, OnATerminalKeysReachTheRun) {
  if (!PseudoTerminal(24, 80).exists()) GTEST_SKIP() << "there are no terminals";
  PseudoTerminal terminal(24, 80);
  ChildProgram run(command("run", {"--train-iters", "1000000", "--restart-on-failure", "3"}), {"TERM=xterm"},
                   terminal.path(), terminal.path());
  wait_until(run, [&] { return fs::exists(fs::path(path("run")) / "live.json"); });
  const pid_t child = only_child(run.pid());
  const auto state_of = [](pid_t process) {  // after the name in parentheses
    std::string id, name, state;
    std::ifstream("/proc/" + std::to_string(process) + "/stat") >> id >> name >> state;
    return state;
  };
  ::kill(-run.pid(), SIGTSTP);
  wait_until(run, [&] { return state_of(run.pid()) == "T" && state_of(child) == "T"; });
  ::kill(-run.pid(), SIGCONT);
  wait_until(run, [&] { return state_of(child) != "T"; });
  ::kill(-run.pid(), SIGINT);
  EXPECT_EQ(run.wait().exit_code, 128 + SIGINT);
  EXPECT_TRUE(fs::exists(fs::path(path("run")) / "latest_checkpointed_iteration.txt"));
}

TEST_F(Supervision, TheChildOfASupervisorThatIsKilledSavesAndEnds) {
  ChildProgram run(command("run", {"--train-iters", "1000000", "--restart-on-failure", "3"}));
  wait_until(run, [&] { return fs::exists(fs::path(path("run")) / "live.json"); });
  ::kill(run.pid(), SIGKILL);
  run.wait();
  const fs::path tracker = fs::path(path("run")) / "latest_checkpointed_iteration.txt";
  for (int look = 0; look < 60'000 && !fs::exists(tracker); ++look) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(fs::exists(tracker));
}

TEST_F(Supervision, ALauncherStartsTheRanksAgainWhereOneWasKilled) {
  if (const std::string reason = why_no(LaunchedBy::kMpirun); !reason.empty()) GTEST_SKIP() << reason;
  const Words flags = {"--train-iters", "200", "--save-interval", "10", "--tp", "2"};
  ASSERT_EQ(ChildProgram(command("whole", flags)).wait().exit_code, 0);
  ChildProgram run(command("killed", with(flags, {"--restart-on-failure", "3", "--launcher",
                                                  TERATRON_MPIRUN " --oversubscribe -n 2"})),
                   mpirun_environment());
  const auto rank = [&](int number) { return process_of_mpirun(only_child(run.pid()), number); };
  wait_until(run, [&] { return has_updates("killed", rank(0)); });
  ASSERT_NE(rank(1), 0) << run.errors_so_far();
  ::kill(rank(1), SIGKILL);
  const Outcome outcome = run.wait();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("it starts again"));
  EXPECT_EQ(TinyTraining::losses(path("killed")), TinyTraining::losses(path("whole")));
}

TEST_F(Supervision, WrongUsesAreOneErrorBeforeAnyWork) {
  const auto errors_of = [&](const Words& more, const std::string& shell = "") {
    const Words words = with({TERATRON_BINARY}, training_.command(with({"--train-iters", "3"}, more)));
    const Outcome outcome = ChildProgram(words, shell.empty() ? Words{} : Words{shell}).wait();
    EXPECT_EQ(outcome.exit_code, 2) << outcome.errors;
    return outcome.errors;
  };
  EXPECT_THAT(errors_of({"--restart-on-failure", "2"}), HasSubstr("needs a place for it: --save DIR"));
  EXPECT_THAT(errors_of({"--launcher", "mpirun -n 2"}), HasSubstr("--restart-on-failure N"));
  EXPECT_THAT(errors_of({"--restart-on-failure", "-1", "--save", path("x")}), HasSubstr("--restart-on-failure"));
  EXPECT_THAT(errors_of({"--watchdog", "-1"}), HasSubstr("--watchdog"));
  EXPECT_THAT(errors_of({"--restart-on-failure", "2", "--save", path("x")}, "OMPI_COMM_WORLD_SIZE=2"),
              HasSubstr("--restart-on-failure 2 --launcher 'mpirun .."));
  EXPECT_FALSE(fs::exists(path("x")));
}

}  // namespace
}  // namespace teratron::testing
