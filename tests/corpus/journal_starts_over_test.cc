// Runs that cannot go on where another one ended: its files are damaged, or its inputs or flags are others.
#include "corpus/journal_runs.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

TEST_F(CorpusJournal, ADamagedSpoolIsAnErrorAndThenStartsOver) {
  kinds_ = "o";
  write_inputs(300);
  const std::vector<std::string> expected = undisturbed();
  const Ends ends{.points = 10, .by_signal = true};
  for (const std::size_t byte : {7, 16, 41}) {  // of the first document's length, of its line, of its content
    ASSERT_FALSE(run(&ends));
    std::string spool = read_file(folder_ / "out.jsonl.spool.partial");
    spool[byte] = '\x7f';
    write_file_atomically(folder_ / "out.jsonl.spool.partial", spool);
    EXPECT_THAT([&] { run(); }, ThrowsMessage<UserError>(HasSubstr("spool.partial' is damaged"))) << "byte " << byte;
    EXPECT_EQ(names_there().size(), 4);
    ASSERT_TRUE(run());
    EXPECT_EQ(results(), expected);
    fs::remove(options_.out);
    fs::remove(options_.dropped);
  }
  ASSERT_FALSE(run(&ends));
  fs::resize_file(folder_ / "out.jsonl.spool.partial", 3);
  told_.clear();
  ASSERT_TRUE(run());
  EXPECT_THAT(told_, HasSubstr("out.jsonl.spool.partial' is not what it was"));
  EXPECT_EQ(results(), expected);
}

TEST_F(CorpusJournal, ADamagedStateIsAnErrorAndThenStartsOver) {
  for (const std::string kinds : {"so", "o", "s"}) {
    kinds_ = kinds;
    write_inputs(300);
    const std::vector<std::string> expected = undisturbed();
    for (const std::size_t byte : {0, 8, 14, 16}) {  // of a stage's number, of a length, of a delta
      fs::remove(options_.out);
      fs::remove(options_.dropped);
      const Ends ends{.points = 10, .by_signal = true};
      ASSERT_FALSE(run(&ends));
      std::string state = read_file(folder_ / "out.jsonl.journal-state.partial");
      state[byte] = '\x7f';
      write_file_atomically(folder_ / "out.jsonl.journal-state.partial", state);
      EXPECT_THAT([&] { run(); }, ThrowsMessage<UserError>(HasSubstr("journal-state.partial' is damaged")))
          << kinds << ", byte " << byte;
      ASSERT_TRUE(run());
      EXPECT_EQ(results(), expected);
    }
  }
}

TEST_F(CorpusJournal, AChangedInputOrFlagStartsOver) {
  write_inputs(300);
  options_.settings = {{"--flag", "1"}};
  const std::vector<std::string> expected = undisturbed();
  const Ends ends{.points = 10, .by_signal = true};
  const auto goes_anew = [&](const std::string& reason) {
    told_.clear();
    processed_ = 0;
    EXPECT_TRUE(run());
    EXPECT_THAT(told_, AllOf(HasSubstr("starts over"), HasSubstr(reason)));
    EXPECT_EQ(results(), expected);
    fs::remove(options_.out);
    fs::remove(options_.dropped);
    ASSERT_FALSE(run(&ends));
  };
  ASSERT_FALSE(run(&ends));
  options_.settings["--flag"] = "2";
  goes_anew("--flag was \"1\", and is \"2\"");
  fs::last_write_time(folder_ / "b.jsonl.gz", fs::file_time_type::clock::now() - std::chrono::hours(1));
  goes_anew("b.jsonl.gz' is another file, or has changed");
  fs::resize_file(folder_ / "out.jsonl.partial", 3);
  goes_anew("out.jsonl.partial' is not what it was");
  fs::remove(folder_ / "dropped.jsonl.partial");
  goes_anew("dropped.jsonl.partial' is not what it was");
  const std::string journal = read_file(folder_ / "out.jsonl.journal");
  for (const std::size_t size : {std::size_t{0}, journal.size() / 2}) {
    write_file_atomically(folder_ / "out.jsonl.journal", journal.substr(0, size));
    goes_anew("damaged");
  }
  options_.also_read = {folder_.path()};
  goes_anew("is another file");
}

TEST_F(CorpusJournal, ARunThatFailsForItsInputLeavesNothing) {
  write_inputs(300);
  const std::string whole = read_file(folder_ / "d.jsonl.zst");
  write_file_atomically(folder_ / "d.jsonl.zst", whole.substr(0, whole.size() - 9));
  EXPECT_THROW(run(), UserError);
  EXPECT_EQ(names_there().size(), 4);
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace teratron::testing
