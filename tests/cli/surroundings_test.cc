// Commands meet their surroundings: pipes whose readers end, closed descriptors, other commands with the same output,
// disks and limits.
#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>
#include <thread>

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

using ::testing::AnyOf;

class Surroundings : public TrainingCommands<> {
 protected:
  // A line of bash in which $T is the program; its errors go to the Outcome, and so does "ended=CODE" of `end`.
  static Words of_shell(const std::string& line) {
    return {"bash", "-c", std::string("T='") + TERATRON_BINARY + "'\n" + line};
  }
  static Outcome in_shell(const std::string& line) {
    return ChildProgram(of_shell(line)).wait(std::chrono::seconds(120));
  }

  std::string train(const std::string& name, const Words& more = {}) const {
    std::string line = "$T";
    for (const std::string& word :
         training_.command(with({"--save", path(name), "--lr-decay-style", "constant"}, more)))
      line += " '" + word + "'";
    return line;
  }

  // JSON lines of so many documents.
  std::string write_lines(const std::string& name, int documents, const std::string& word) const {
    std::string text;
    for (int i = 0; i < documents; ++i) {
      text += "{\"text\": \"" + word + " " + std::to_string(i * 7919 % documents) + " waits for the gradient\"}\n";
    }
    write_file_atomically(path(name), text);
    return path(name);
  }
};

TEST_F(Surroundings, ASignalSavesWhereTheReaderOfTheLogHasEndedToo) {
  for (const std::string layout : {"1", "2"}) {
    const std::string name = "piped" + layout, metrics = path(name) + "/metrics.jsonl";
    // The reader ends first, as tee does of a Ctrl-C to the whole group.
    const std::string line = train(name, {"--tp", layout, "--train-iters", "1000000", "--log-interval", "1"});
    ChildProgram program(of_shell("(echo $BASHPID > " + path("pid") + "; exec " + line +
                                  " 2>&1) | (read line; exit)\n" + "exit ${PIPESTATUS[0]}"));
    wait_until(program, [&] { return fs::exists(metrics) && fs::file_size(metrics) > 10'000; });
    ::kill(std::stoi(read_file(path("pid"))), SIGINT);
    EXPECT_EQ(program.wait(std::chrono::seconds(30)).exit_code, 128 + SIGINT);
    EXPECT_EQ(std::stoull(read_file(path(name) + "/latest_checkpointed_iteration.txt")),
              training_.losses(path(name)).size());
  }
}

TEST_F(Surroundings, ACommandWhoseOutputIsReadNoMoreEndsInSilenceAndNotAsIfItHadDoneItsWork) {
  const std::string lines = write_lines("lines.jsonl", 30'000, "rank");
  for (const std::string& command :
       {std::string("--help"), std::string("data clean --min-tokens 0 --no-url-rules --out - ") + lines,
        "tokenizer encode --tokenizer " + path("tokenizer") + " " + lines + " -",
        "data info --json - " + path("data")}) {
    const Outcome outcome = in_shell("$T " + command + " | exec true; exit ${PIPESTATUS[0]}");
    // A short output may have been written before the reader ended.
    EXPECT_THAT(outcome.exit_code, AnyOf(0, 141)) << command;
    EXPECT_THAT(outcome.errors, Not(HasSubstr("error"))) << command;
    const Outcome later = in_shell("exec 3> >(true); wait $!; $T " + command + " >&3");  // after its reader's end
    EXPECT_EQ(later.exit_code, 141) << command;
    EXPECT_EQ(later.errors.find("error"), std::string::npos) << later.errors;
  }
}

// Progress of a task of more than a second must not be written to the file.
TEST_F(Surroundings, AClosedDescriptorIsNoFilesNumber) {
  const std::string lines = write_lines("lines.jsonl", 200, "rank");
  ASSERT_EQ(
      in_shell("$T data tokenize --tokenizer " + path("tokenizer") + " --out " + path("whole") + " " + lines).exit_code,
      0);
  const std::vector<std::string> all = {"", "<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"};
  std::vector<std::unique_ptr<ChildProgram>> running;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string name = path("tokens" + std::to_string(i)), pipe = name + ".pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    running.push_back(
        std::make_unique<ChildProgram>(of_shell("(head -n 100 " + lines + "; sleep 1.3; tail -n +101 " + lines +
                                                ") > " + pipe + " &\n$T data tokenize --format jsonl --tokenizer " +
                                                path("tokenizer") + " --out " + name + " " + pipe + " " + all[i])));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Outcome outcome = running[i]->wait(std::chrono::seconds(60));
    // A result that cannot be written is not reported as good.
    EXPECT_EQ(outcome.exit_code, all[i].find(">&-") == 0 || all[i].find(" >&-") != std::string::npos ? 3 : 0)
        << all[i] << outcome.errors;
    EXPECT_EQ(read_file(path("tokens" + std::to_string(i)) + ".bin"), read_file(path("whole.bin"))) << all[i];
  }
}

TEST_F(Surroundings, TheSecondOfTwoCommandsWithOneOutputIsRefusedAndTheFirstOnesFileIsWhole) {
  const std::string lines = write_lines("lines.jsonl", 300, "rank"), other = write_lines("other.jsonl", 300, "layer");
  const std::string with_tokenizer = " --tokenizer " + path("tokenizer");
  struct Case {
    std::string command, file;  // file: the output's name and what follows
  };
  const std::vector<Case> cases = {
      {"data clean --min-tokens 0 --no-url-rules --out OUT IN", ""},
      {"data dedup --out OUT IN", ""},
      {"data langid --keep-unsure --out OUT IN", ""},
      {"data clean --min-tokens 0 --no-url-rules --out OTHER --dropped OUT IN", ""},
      {"data tokenize --format jsonl --out OUT IN" + with_tokenizer, ".bin"},
      {"tokenizer train --format jsonl --vocab-size 270 --out OUT IN", "/vocab.json"},
      {"tokenizer encode IN OUT" + with_tokenizer, ""},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!kHasTextTools && cases[i].command.starts_with("data langid")) continue;
    const auto command = [&](const std::string& in, const std::string& out, const std::string& beside) {
      std::string text = "$T " + cases[i].command;
      for (const auto& [name, value] : {std::pair{"IN", in}, {"OUT", out}, {"OTHER", beside}}) {
        if (const std::size_t at = text.find(name); at != std::string::npos) text.replace(at, std::strlen(name), value);
      }
      return text;
    };
    const std::string name = "out" + std::to_string(i), out = path(name), alone = path("alone" + std::to_string(i));
    const std::string pipe = path("pipe" + std::to_string(i));
    ASSERT_EQ(in_shell(command("- <" + lines, alone, path("x"))).exit_code, 0) << cases[i].command;
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    ChildProgram first(of_shell(command("- <" + pipe, out, path("y"))));
    const int writer = ::open(pipe.c_str(), O_WRONLY);
    const fs::path lock = out + ".teratron.lock";
    wait_until(first, [&] { return fs::exists(lock) && fs::file_size(lock) > 0; });
    const Outcome second = in_shell(command("- <" + other, path("./" + name), path("z")));
    EXPECT_EQ(second.exit_code, 2) << cases[i].command;
    EXPECT_THAT(second.errors, AllOf(HasSubstr("(process "), HasSubstr("begun 20"), HasSubstr("already")))
        << cases[i].command;
    const std::string text = read_file(lines);
    EXPECT_EQ(::write(writer, text.data(), text.size()), std::ssize(text));
    ::close(writer);
    const Outcome outcome = first.wait(std::chrono::seconds(60));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(read_file(out + cases[i].file), read_file(alone + cases[i].file)) << cases[i].command;
    EXPECT_FALSE(fs::exists(out + ".teratron.lock"));
  }
}

TEST_F(Surroundings, TwoCommandsThatBeginAtRandomTimesWriteOneAfterTheOther) {
  const std::vector<std::string> lines = {write_lines("a.jsonl", 4000, "rank"), write_lines("b.jsonl", 4000, "layer")};
  const auto command = [&](const std::string& in, const std::string& out) {
    return of_shell("exec $T data tokenize --overwrite --threads 1 --tokenizer " + path("tokenizer") + " --out " +
                    path(out) + " " + in);
  };
  for (const char* const out : {"a", "b"}) {
    ASSERT_EQ(ChildProgram(command(path(out) + ".jsonl", out)).wait().exit_code, 0);
  }
  RandomSequence random(RandomStream{.seed = 11});
  for (int trial = 0; trial < 12; ++trial) {
    ChildProgram first(command(lines[0], "both"));
    std::this_thread::sleep_for(std::chrono::milliseconds(random.below(40)));
    ChildProgram second(command(lines[1], "both"));
    const Outcome a = first.wait(), b = second.wait();
    ASSERT_THAT((std::array{a.exit_code, b.exit_code}), AnyOf(std::array{0, 2}, std::array{2, 0}, std::array{0, 0}))
        << a.errors << b.errors;
    // Both write where one ended before the other took the lock, in either order: the system starts the second process
    // first now and then.
    const auto is_of = [&](const std::string& winner) {
      return read_file(path("both.bin")) == read_file(path(winner + ".bin")) &&
             read_file(path("both.idx")) == read_file(path(winner + ".idx"));
    };
    EXPECT_TRUE((a.exit_code == 0 && is_of("a")) || (b.exit_code == 0 && is_of("b"))) << a.exit_code << b.exit_code;
  }
}

TEST_F(Surroundings, LogsThatFindNoRoomEndNoRun) {
  const Outcome full = in_shell(train("full", {"--train-iters", "30", "--trace", "/dev/full"}) + " 2>/dev/full");
  EXPECT_EQ(full.exit_code, 0);
  const Outcome traced = in_shell(train("traced", {"--train-iters", "30", "--trace", "/dev/full"}));
  EXPECT_EQ(traced.exit_code, 0) << traced.errors;
  EXPECT_THAT(traced.errors, AllOf(HasSubstr("cannot write '/dev/full': No space left"), HasSubstr("saved ")));
  for (const char* const name : {"full", "traced"}) EXPECT_EQ(training_.losses(path(name)).size(), 30U);
}

TEST_F(Surroundings, LimitsOfAJobEndARunAsSignalsDo) {
  struct Case {
    std::string name, limit;
    int signal;
  };
  // metrics.jsonl outgrows its limit long after a checkpoint would.
  for (const Case& one : {Case{"size", "ulimit -f 150", SIGXFSZ}, Case{"time", "ulimit -S -t 1", SIGXCPU},
                          Case{"hard", "ulimit -t 2", SIGXCPU}}) {
    const Outcome outcome =
        in_shell(one.limit + "; exec " + train(one.name, {"--train-iters", "1000000", "--hidden-size", "16"}));
    EXPECT_EQ(outcome.exit_code, 128 + one.signal) << outcome.errors;
    EXPECT_THAT(outcome.errors, AllOf(HasSubstr("ends after iteration"), HasSubstr("saved ")));
  }
  const std::string lines = write_lines("lines.jsonl", 3000, "rank");
  const Outcome tokenize = in_shell("ulimit -f 8; $T data tokenize --tokenizer " + path("tokenizer") + " --out " +
                                    path("small") + " " + lines);
  EXPECT_EQ(tokenize.exit_code, 3);
  EXPECT_THAT(tokenize.errors, AllOf(HasSubstr("/small."), HasSubstr("ulimit -f")));
  for (const std::string end : {".bin", ".bin.partial", ".idx", ".teratron.lock"})
    EXPECT_FALSE(fs::exists(path("small") + end));
}

#ifndef TERATRON_SANITIZED  // which reserves more than such limits
TEST_F(Surroundings, TooLittleMemoryOrTooFewThreadsAreTheMachinesFault) {
  const std::string lines = write_lines("lines.jsonl", 3000, "rank");
  int refused = 0;
  for (const int kibibytes : {40'000, 60'000, 90'000, 130'000, 200'000}) {
    const std::string limit = "ulimit -v " + std::to_string(kibibytes) + "; exec ";
    for (const std::string& command :
         {train("v" + std::to_string(kibibytes), {"--train-iters", "1", "--threads", "8"}),
          "$T data dedup --overwrite --threads 8 --out " + path("deduplicated.jsonl") + " " + lines}) {
      const Outcome outcome = in_shell(limit + command);
      if (outcome.exit_code == 127) continue;  // not even the program's libraries have room
      EXPECT_THAT(outcome.exit_code, AnyOf(0, 3)) << command << outcome.errors;
      EXPECT_THAT(outcome.errors, Not(HasSubstr("a bug of Teratron")));
      refused += outcome.exit_code == 3;
    }
  }
  EXPECT_GT(refused, 0);
}
#endif

TEST_F(Surroundings, MoreRanksAsThreadsThanAProcessBearsAreRefusedAtOnce) {
  const Outcome outcome = in_shell("exec " + train("many", {"--train-iters", "1", "--dp", "3000", "--micro-batch-size",
                                                            "1", "--global-batch-size", "3000"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("3000 ranks as threads"), HasSubstr("mpirun")));
}

TEST_F(Surroundings, ASettingsPipeThatNobodyWritesToTrainsNothing) {
  const std::string run = train("piped", {"--train-iters", "1"});
  for (const std::string from : {" --config /dev/stdin <&-", " --config - <&-", " --config /proc/self/fd/0 <&-",
                                 " --config /dev/stdin < /dev/null", " --config <(false)"}) {
    const Outcome outcome = in_shell(run + from);
    EXPECT_EQ(outcome.exit_code, 2) << from;
    EXPECT_THAT(outcome.errors, AnyOf(HasSubstr("cannot read standard input"), HasSubstr("no setting came through it")))
        << from;
    EXPECT_FALSE(fs::exists(path("piped")));
  }
}

TEST_F(Surroundings, ResultsThatCouldNotBeWrittenEndARunBeforeItBegins) {
  fs::create_directory(path("folder"));
  for (const std::string& json : {path("none/x.json"), path("folder")}) {
    for (const std::string& command :
         {train("unwritten", {"--train-iters", "1000000", "--json", json}),
          "$T simulate --stages 2 --micro-batches 2 --json " + json, "$T data info " + path("data") + " --json " + json,
          "$T generate --load nowhere --json " + json}) {
      const Outcome outcome = in_shell("exec " + command);
      EXPECT_EQ(outcome.exit_code, 2) << command << outcome.errors;
      EXPECT_THAT(outcome.errors, HasSubstr("cannot write '" + json)) << command;
      EXPECT_FALSE(fs::exists(path("unwritten")));
    }
  }
}

TEST_F(Surroundings, ARunsSettingsStartAnotherOneWhoseRecordsGoElsewhere) {
  ASSERT_EQ(in_shell(train("a", {"--train-iters", "2", "--tensorboard-dir", path("a/curves")})).exit_code, 0);
  const Outcome other = in_shell("$T train --config " + path("a/config.toml") + " --save " + path("b"));
  EXPECT_EQ(other.exit_code, 0) << other.errors;
  EXPECT_EQ(training_.losses(path("b")), training_.losses(path("a")));
  const Outcome on = in_shell("$T train --load " + path("a") + " --train-iters 4 --override-opt-param-scheduler");
  EXPECT_EQ(on.exit_code, 0) << on.errors;
  EXPECT_THAT(on.errors, Not(HasSubstr("nothing is written to the checkpoint's --tensorboard-dir")));
}

TEST_F(Surroundings, ARunThatEndedBeforeItsFirstCheckpointBeginsItsRecordsAgain) {
  const std::string run = train("a", {"--train-iters", "2", "--tensorboard-dir", path("curves")});
  ASSERT_EQ(in_shell(run).exit_code, 0);
  EXPECT_THAT(in_shell(train("b", {"--train-iters", "2", "--tensorboard-dir", path("curves")})).errors,
              HasSubstr("already holds the records of a run"));
  ASSERT_EQ(in_shell("rm -r " + path("a/latest_checkpointed_iteration.txt") + " " + path("a/iter_*")).exit_code, 0);
  const Outcome again = in_shell(run);
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  ASSERT_EQ(in_shell("rm -r " + path("a")).exit_code, 0);
  EXPECT_THAT(in_shell(run).errors, HasSubstr("already holds the records of a run")) << "its folder is gone";
}

TEST_F(Surroundings, NameTheSpaceThatATemporaryFileLacks) {
  const std::string dedup =
      "$T data dedup --overwrite --out " + path("d.jsonl") + " " + write_lines("lines.jsonl", 3000, "rank");
  std::vector<std::pair<std::string, std::string>> limits = {{"ulimit -f 8", "ulimit -f"}};
#ifndef TERATRON_SANITIZED  // the sanitizer's look at an object's type itself opens a pipe
  limits.emplace_back("ulimit -n 8", "ulimit -n");
#endif
  for (const auto& [limit, remedy] : limits) {
    const Outcome outcome = in_shell(limit + "; " + dedup);
    EXPECT_THAT(outcome.exit_code, AnyOf(2, 3)) << limit;
    EXPECT_THAT(outcome.errors, AllOf(HasSubstr(remedy), Not(HasSubstr("as much room as")))) << limit;
    EXPECT_FALSE(fs::exists(path("d.jsonl.teratron.lock"))) << limit;
  }
  const std::string loop = path("loop");
  const Outcome looped = in_shell("ln -s loop2 " + loop + "; ln -s loop " + loop + "2; $T data dedup --out " + loop +
                                  " " + path("lines.jsonl"));
  EXPECT_EQ(looped.exit_code, 2) << looped.errors;
  EXPECT_TRUE(fs::is_symlink(loop));
}

TEST_F(Surroundings, LimitsOfWaitingAreWholeSeconds) {
  for (const std::string wrong : {"TERATRON_START_TIMEOUT=abc", "TERATRON_START_TIMEOUT=5x",
                                  "TERATRON_START_TIMEOUT=-1", "TERATRON_START_TIMEOUT=0"}) {
    const Outcome outcome = in_shell("OMPI_COMM_WORLD_SIZE=2 " + wrong + " " + train("waits", {"--train-iters", "1"}));
    if (outcome.errors.find("built without MPI") != std::string::npos) GTEST_SKIP();
    EXPECT_EQ(outcome.exit_code, 2) << wrong;
    EXPECT_THAT(outcome.errors, HasSubstr("it must be whole seconds")) << wrong;
  }
}

}  // namespace
}  // namespace teratron::testing
