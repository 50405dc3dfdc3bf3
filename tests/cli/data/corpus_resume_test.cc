// Corpus commands that are asked to end, or disturbed by other commands, and begun again: the bytes are those of a run
// that nobody disturbed. tests/torture kills them.

#include <csignal>

#include "base/compressed.h"
#include "base/philox.h"
#include "cli/binary.h"

namespace teratron::testing {
namespace {

class CorpusResume : public FolderTest {
 protected:
  // Two files, one of them compressed; some URLs come again.
  void write_documents(int documents) {
    std::string lines[2];
    for (int i = 0; i < 2 * documents; ++i) {
      std::string text = i % 9 == 0 ? "Die Leute reden \u00c3\u00bcber das Wetter und sitzen auf ihren Taschen."
                                    : "People sat on their bags and talked about the weather &amp; the days.";
      for (std::uint64_t left = random_.below(30); left > 0; --left) text += fmt::format(" the word {}", left);
      lines[i / documents] +=
          Json{{"text", text}, {"url", fmt::format("http://a.org/{}", random_.below(3000))}}.dump() + "\n";
    }
    write_file_atomically(path("a.jsonl"), lines[0]);
    write_file_atomically(path("b.jsonl.gz"), gzip(lines[1]));
  }
  Words command(const Words& more) const {
    return with({TERATRON_BINARY, "data", "clean", path("a.jsonl"), path("b.jsonl.gz"), "--min-tokens", "0",
                 "--batch-bytes", "20000", "--journal-seconds", "0", "--overwrite"},
                more);
  }
  RandomSequence random_{RandomStream{.seed = 61}};
};

TEST_F(CorpusResume, ASignalIsAnsweredByAPointToGoOnFrom) {
  write_documents(2500);
  const Words whole = {"--out", path("out.jsonl")};
  ASSERT_EQ(ChildProgram(command(whole)).wait().exit_code, 0);
  const std::string expected = read_file(path("out.jsonl"));
  fs::remove(path("out.jsonl"));
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto journal_time = [&] {
      std::error_code none;  // which is a time as well
      return fs::last_write_time(path("out.jsonl.journal"), none);
    };
    const auto before = journal_time();
    ChildProgram run(with(command(whole), {"--threads", "1"}));
    wait_until(run, [&] { return journal_time() != before || fs::exists(path("out.jsonl")); });
    ::kill(run.pid(), signal);
    const Outcome outcome = run.wait();
    EXPECT_EQ(outcome.exit_code, 128 + signal) << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr("run the same command again to resume"));
    EXPECT_EQ(outcome.errors.find("resumes after document") != std::string::npos, signal == SIGTERM);
    EXPECT_FALSE(fs::exists(path("out.jsonl")));
  }
  // With another flag it starts over, and says why; with the first one again, too.
  ChildProgram other(with(command(whole), {"--keep-newlines"}));
  EXPECT_THAT(other.wait().errors, AllOf(HasSubstr("starts over"), HasSubstr("--keep-newlines was \"false\"")));
  ASSERT_EQ(ChildProgram(command(whole)).wait().exit_code, 0);
  EXPECT_EQ(read_file(path("out.jsonl")), expected);
  EXPECT_EQ(folder_.entries(), 3);
}

// A command takes away what another one of this output has left to go on from.
TEST_F(CorpusResume, NothingResumesFromTheOutputOfAnotherCommand) {
  write_documents(1000);
  const Words whole = {"--out", path("out.jsonl")};
  ASSERT_EQ(ChildProgram(command(whole)).wait().exit_code, 0);
  const std::string expected = read_file(path("out.jsonl"));
  ChildProgram first(with(command(whole), {"--threads", "1"}));
  wait_until(first, [&] { return fs::exists(path("out.jsonl.journal")); });
  ::kill(first.pid(), SIGKILL);
  first.wait();
  ChildProgram second({TERATRON_BINARY, "data", "dedup", path("a.jsonl"), "--out", path("out.jsonl"), "--overwrite"});
  wait_until(second, [&] { return !fs::exists(path("out.jsonl.journal")); });
  ::kill(second.pid(), SIGKILL);
  second.wait();
  ASSERT_EQ(ChildProgram(command(whole)).wait().exit_code, 0);
  EXPECT_EQ(read_file(path("out.jsonl")), expected);
}

}  // namespace
}  // namespace teratron::testing
