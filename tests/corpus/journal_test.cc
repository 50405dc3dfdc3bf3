// Runs that go on where another one ended: whatever ended them, and however often, the output, the statistics and the
// dropped documents are those of one run, and no document is worked on twice that was safe on the disk.
#include "corpus/journal_runs.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

TEST_F(CorpusJournal, AnEndedRunGoesOnAndGivesTheSameBytes) {
  const int threads_before = thread_count();
  for (int trial = 0; trial < trials(60); ++trial) {
    SCOPED_TRACE(trial);
    options_.out = folder_ / (trial % 2 == 0 ? "out.jsonl" : "out.jsonl.zst");
    options_.dropped = folder_ / (trial % 3 == 0 ? "dropped.jsonl.zst" : "dropped.jsonl");
    kinds_ = std::vector<std::string>{"ss", "so", "os", "soso", "s", "oo"}[random_.below(6)];
    write_inputs(1 + random_.below(200));
    expect_same_bytes(2000, 30);
  }
  set_thread_count(threads_before);
}

TEST_F(CorpusJournal, AnEndedExtractionGoesOnAndGivesTheSameBytes) {
  const int threads_before = thread_count();
  for (int trial = 0; trial < trials(20); ++trial) {
    SCOPED_TRACE(trial);
    kinds_ = std::vector<std::string>{"e", "es", "eo"}[random_.below(3)];
    write_pages();
    expect_same_bytes(3000, 3);  // few, so that many end while they pass over what is done
  }
  set_thread_count(threads_before);
}

// Frames of zstd end where 4 MiB of lines end, wherever the journal has its points.
TEST_F(CorpusJournal, CompressedFramesAreTheSame) {
  options_.out = folder_ / "out.jsonl.zst";
  options_.batch_bytes = 300'000;
  std::string lines;
  for (std::uint64_t i = 0; i < 150; ++i) {
    std::string text;
    while (text.size() < 90'000) text += std::to_string(random_.below(1'000'000'000));
    lines += "{\"text\": \"" + text + "\"}\n";
  }
  write_file_atomically(folder_ / "in.jsonl", lines);
  options_.files = {folder_ / "in.jsonl"};
  const std::vector<std::string> expected = undisturbed();
  // A run that goes on is asked while it passes over what is done, too.
  bool is_done = false;
  for (std::int64_t least = 1; !is_done; least += 5) {
    ASSERT_LT(least, 500);
    const Ends ends{.points = least + static_cast<std::int64_t>(random_.below(9)), .by_signal = random_.below(2) == 0};
    is_done = run(&ends);
  }
  EXPECT_TRUE(results() == expected);  // bytes that nobody reads
  EXPECT_GT(read_decompressed(options_.out).size(), std::size_t{9} << 20);
}

TEST_F(CorpusJournal, DoesNotRepeatFinishedWork) {
  write_inputs(300);
  undisturbed();
  run();
  const std::int64_t all = processed_;
  fs::remove(options_.out);
  processed_ = 0;
  told_.clear();
  for (const std::int64_t points : {7, 20, 30}) {
    const Ends ends{.points = points, .by_signal = true};
    ASSERT_FALSE(run(&ends));
  }
  ASSERT_TRUE(run());
  EXPECT_EQ(processed_, all);
  EXPECT_THAT(told_, AllOf(HasSubstr("stopped after document "), HasSubstr("run the same command again"),
                           HasSubstr("resumes after document ")));
}

TEST_F(CorpusJournal, KeepsTheMeasurementsOfASurvey) {
  kinds_ = "so";
  write_inputs(300);
  const std::vector<std::string> expected = undisturbed();
  run();
  const std::int64_t all = measured_;
  measured_ = processed_ = 0;
  fs::remove(options_.out);
  Ends ends{.by_signal = true};
  for (ends.points = 7; !run(&ends); ends.points += 20) {  // in the second pass, too
    EXPECT_THAT(names_there(), Contains("out.jsonl.spool.partial"));
  }
  EXPECT_EQ(measured_, all);
  EXPECT_EQ(results(), expected);
  EXPECT_EQ(names_there().size(), 6);
}

// State kept in memory between two points would grow with the speed of the run.
TEST_F(CorpusJournal, StateIsSavedAfterEachBatch) {
  class Teller final : public Stage {
   public:
    explicit Teller(std::int64_t* most) : most_(most) {}
    std::string_view name() const override { return "teller"; }
    StageOutput process(Document document) const override { return kept(std::move(document)); }
    std::optional<Drop> admit(const Document&) override {
      *most_ = std::max(*most_, ++untold_);
      return std::nullopt;
    }
    std::string take_state_delta() override {
      return std::string(static_cast<std::size_t>(std::exchange(untold_, 0)), '1');
    }

   private:
    std::int64_t* most_;
    std::int64_t untold_ = 0;
  };
  write_inputs(300);
  options_.journal_seconds = 1000;
  options_.batch_bytes = 1;  // a document
  std::int64_t most = 0;
  std::vector<std::unique_ptr<Stage>> stages;
  stages.push_back(std::make_unique<Teller>(&most));
  run_stages(stages, options_);
  EXPECT_EQ(most, 1);
}

TEST_F(CorpusJournal, TheEndOfASurveyIsAPoint) {
  kinds_ = "eo";
  options_.journal_seconds = 1000;
  for (int trial = 0; trial < trials(10); ++trial) {
    SCOPED_TRACE(trial);
    write_pages();
    options_.batch_bytes = 1000;
    const std::vector<std::string> expected = undisturbed();
    // Killed later and later it starts over, until that is in the second pass.
    for (Ends ends; !fs::exists(folder_ / "out.jsonl.journal"); ++ends.points) ASSERT_FALSE(run(&ends));
    measured_ = 0;
    ASSERT_TRUE(run());
    EXPECT_EQ(measured_, 0);
    EXPECT_EQ(results(), expected);
    fs::remove(options_.out);
    fs::remove(options_.dropped);
  }
}

TEST_F(CorpusJournal, OnlyFilesGoOn) {
  write_inputs(10);
  const auto made = stages();
  EXPECT_TRUE(can_resume(made, options_));
  for (const std::string out : {"-", "/dev/stdout", "/dev/full"}) {
    StreamOptions other = options_;
    other.out = out;
    EXPECT_FALSE(can_resume(made, other)) << out;
    std::swap(other.out, other.dropped);
    other.out = options_.out;
    EXPECT_FALSE(can_resume(made, other)) << out;
  }
  StreamOptions piped = options_;
  piped.files.emplace_back("-");
  EXPECT_FALSE(can_resume(made, piped));
}

}  // namespace
}  // namespace teratron::testing
