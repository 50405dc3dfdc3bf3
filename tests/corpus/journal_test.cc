// Runs that go on where another one ended: whatever ended them, and however often, the output, the statistics and the
// dropped documents are those of one run, and no document is worked on twice that was safe on the disk.
#include "corpus/stream/journal.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "base/compressed.h"
#include "base/error.h"
#include "base/files/decompression.h"
#include "base/host/threads.h"
#include "base/philox.h"
#include "base/trials.h"
#include "corpus/pages.h"
#include "corpus/remembering_stages.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

struct Killed {};  // what no part of the stream catches

class CorpusJournal : public ::testing::Test {
 protected:
  struct Ends {
    std::int64_t points = 0;  // of the journal, before
    bool by_signal = false;   // else as if it was killed
  };
  // By the letters of kinds_: extract, seen, often.
  std::vector<std::unique_ptr<Stage>> stages() {
    std::vector<std::unique_ptr<Stage>> made;
    for (const char kind : kinds_) {
      if (kind == 'e') made.push_back(make_extract_stage({.least_characters = 20}));
      if (kind == 's') made.push_back(std::make_unique<SeenStage>(&processed_));
      if (kind == 'o') made.push_back(std::make_unique<OftenStage>(&measured_));
    }
    return made;
  }

  void write_inputs(std::uint64_t documents) {
    options_.files.clear();
    for (const std::string name : {"a.jsonl", "b.jsonl.gz", "c.txt", "d.jsonl.zst"}) {
      std::string lines;
      for (std::uint64_t left = name == "c.txt" ? 1 : random_.below(documents); left > 0; --left) {
        if (random_.below(9) == 0) lines += "\n";
        const std::string text(random_.below(90), static_cast<char>('a' + random_.below(2)));
        lines += random_.below(40) == 0 ? "bad\n" : "{\"text\": \"" + text + "\"}\n";
      }
      options_.files.push_back(folder_ / name);
      write_file_atomically(options_.files.back(), name == "b.jsonl.gz"    ? gzip(lines)
                                                   : name == "d.jsonl.zst" ? zstd(lines)
                                                                           : lines);
    }
  }

  // Every kind of file that pages come in, and of record.
  void write_pages() {
    const auto page = [&] { return page_of(random_paragraphs(random_, random_.below(5))); };
    const auto warc = [&] {
      std::string records;
      for (std::uint64_t left = random_.below(40); left > 0; --left) {
        const std::uint64_t kind = random_.below(5);
        if (kind == 0) records += warc_record("about", {.type = "request"});
        if (kind == 1) records += warc_record("", {.type = "metadata"});
        if (kind == 2) records += warc_record(http_response("gone", "", 404));
        if (kind > 2) records += warc_record(http_response(page()));
      }
      return records + warc_record("", {.type = "metadata"});
    };
    std::string lines;
    for (std::uint64_t left = 1 + random_.below(40); left > 0; --left) {
      lines += random_.below(9) == 0 ? "bad\n" : nlohmann::json{{"html", page()}}.dump() + "\n";
    }
    const std::map<std::string, std::string> contents = {{"a.html", page()},
                                                         {"b.warc.gz", gzip(warc())},
                                                         {"c.jsonl.zst", zstd(lines)},
                                                         {"d.htm", page()},
                                                         {"e.warc", warc()}};
    options_.files.clear();
    for (const auto& [name, content] : contents) {
      options_.files.push_back(folder_ / name);
      write_file_atomically(options_.files.back(), content);
    }
  }

  // Ends runs at random, and later and later, until one comes to its own end. What it leaves is what one run does that
  // nothing ends.
  void expect_same_bytes(std::int64_t most_batch_bytes, std::uint64_t most_points) {
    const auto any_size = [&] {
      return static_cast<std::int64_t>(1 + random_.below(static_cast<std::uint64_t>(most_batch_bytes)));
    };
    options_.batch_bytes = any_size();
    const std::vector<std::string> expected = undisturbed();
    bool is_done = false;
    for (std::uint64_t ended = 0; !is_done; ++ended) {
      ASSERT_LT(ended, 500);
      set_thread_count(1 + static_cast<int>(random_.below(3)));
      options_.batch_bytes = any_size();
      options_.journal_seconds = random_.below(2) == 0 ? 0 : 0.001;  // a point after each batch, or after some
      const Ends ends{.points = static_cast<std::int64_t>(random_.below(most_points + ended)) + 1,
                      .by_signal = random_.below(2) == 0};
      is_done = run(&ends);
      EXPECT_EQ(is_done, fs::exists(options_.out));
    }
    EXPECT_TRUE(results() == expected) << kinds_ << "\n" << told_;
    EXPECT_EQ(names_there().size(), options_.files.size() + 2);  // and the results
    fs::remove(options_.out);
    fs::remove(options_.dropped);
  }

  // Runs to its end, or to the one that is given. Returns whether it came to its own.
  bool run(const Ends* ends = nullptr) {
    std::int64_t asked = 0;
    options_.end_signal = [&] {
      if (ends == nullptr || asked++ < ends->points) return 0;
      if (!ends->by_signal) throw Killed();
      return SIGTERM;
    };
    options_.report = [&](std::string_view line) { told_ += std::string(line) + "\n"; };
    const auto made = stages();
    try {
      statistics_ = json_of(run_stages(made, options_), made).dump();
      return true;
    } catch (const Killed&) {
      return false;
    } catch (const EndedBySignal& end) {
      EXPECT_EQ(end.exit_code(), 128 + SIGTERM);
      return false;
    }
  }
  std::vector<std::string> results() const {
    return {read_file(options_.out), read_file(options_.dropped), statistics_};
  }
  std::vector<std::string> names_there() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
  // The result of one run over the inputs; its files are removed.
  std::vector<std::string> undisturbed() {
    EXPECT_TRUE(run());
    const std::vector<std::string> expected = results();
    fs::remove(options_.out);
    fs::remove(options_.dropped);
    processed_ = measured_ = 0;
    told_.clear();
    return expected;
  }

  TemporaryFolder folder_;
  RandomSequence random_{RandomStream{.seed = 51}};
  StreamOptions options_{.out = folder_ / "out.jsonl",
                         .dropped = folder_ / "dropped.jsonl",
                         .max_bad_share = 1,
                         .batch_bytes = 300,
                         .journal_seconds = 0};
  std::string kinds_ = "ss";
  std::atomic<std::int64_t> processed_{0}, measured_{0};
  std::string statistics_, told_;
};

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

TEST_F(CorpusJournal, ADamagedSpoolIsAnErrorAndThenStartsOver) {
  kinds_ = "o";
  write_inputs(300);
  const std::vector<std::string> expected = undisturbed();
  const Ends ends{.points = 10, .by_signal = true};
  ASSERT_FALSE(run(&ends));
  std::string spool = read_file(folder_ / "out.jsonl.spool.partial");
  spool[7] = '\x7f';  // of the first document's length
  write_file_atomically(folder_ / "out.jsonl.spool.partial", spool);
  EXPECT_THAT([&] { run(); }, ThrowsMessage<UserError>(HasSubstr("spool.partial' is damaged")));
  EXPECT_EQ(names_there().size(), 4);
  ASSERT_TRUE(run());
  EXPECT_EQ(results(), expected);
  fs::remove(options_.out);
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
