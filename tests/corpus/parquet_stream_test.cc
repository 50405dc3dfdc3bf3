// Parquet through the stages: rows come out as lines of JSON with all their columns, and a run that was ended goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "base/message_of.h"
#include "corpus/dedup/dedup_stage.h"
#include "corpus/remembering_stages.h"
#include "corpus/stage_fixture.h"
#include "parquet/golden_files.h"

namespace teratron::testing {
namespace {

class ParquetStream : public StageTest {
 protected:
  std::string run(
      const std::string& file, std::vector<std::unique_ptr<Stage>> stages,
      const std::function<int()>& end_signal = [] { return 0; }) {
    StreamOptions given = options();
    given.files = {golden_parquet() / file};
    given.batch_bytes = 500;
    given.journal_seconds = 0;
    given.end_signal = end_signal;
    counts_ = run_stages(stages, given);
    return read_file(given.out);
  }
  std::string without_duplicates(const std::string& file) {
    return run(file, stages_of(DedupSettings{}.make(options())));
  }
};

TEST_F(ParquetStream, RowsComeOutAsTheirLinesWouldWithAllColumns) {
  const std::string lines = without_duplicates("fineweb.jsonl");
  EXPECT_GT(counts_.kept, 5);
  EXPECT_LT(counts_.kept, counts_.documents);
  for (const char* file : {"fineweb-snappy.parquet", "fineweb-zstd.parquet", "fineweb-deltas.parquet"}) {
    EXPECT_EQ(without_duplicates(file), lines) << file;
  }
}

TEST_F(ParquetStream, DroppedRowsAreNamedAsRows) {
  without_duplicates("fineweb-zstd.parquet");
  const auto lines = json_lines(folder_ / "dropped.jsonl");
  EXPECT_GT(lines.size(), 0U);
  for (const auto& line : lines) {
    EXPECT_THAT(line["detail"].get<std::string>(), ::testing::ContainsRegex("^of .*fineweb-zstd.parquet, row [0-9]+$"));
  }
}

TEST_F(ParquetStream, BytesInAnotherEncodingAreNoTexts) {
  StreamOptions given = options();
  given.files = {golden_parquet() / "pages-plain.parquet"};
  given.text_key = "html";
  EXPECT_THAT(message_of<UserError>([&] { run_stages({}, given); }),
              ::testing::HasSubstr("in row 1 has no text in the column 'html', but bytes in another encoding"));
}

TEST_F(ParquetStream, RunsThatWereEndedGoOnWithinAFile) {
  std::atomic<std::int64_t> processed = 0;
  const auto stages = [&] { return stages_of(std::make_unique<SeenStage>(&processed)); };
  const std::string whole = run("fineweb-zstd.parquet", stages());
  std::filesystem::remove(folder_ / "out.jsonl");
  const std::int64_t documents = processed.exchange(0);
  int ended = 0;
  for (bool is_done = false; !is_done && ended < 100;) {
    int batches = 0;
    try {
      EXPECT_EQ(run("fineweb-zstd.parquet", stages(), [&] { return ++batches == 2 ? 15 : 0; }), whole);
      is_done = true;
    } catch (const EndedBySignal&) {
      ++ended;
    }
  }
  EXPECT_GT(ended, 2);
  EXPECT_LT(ended, 100);
  EXPECT_EQ(processed, documents) << "no document is worked on twice";
}

}  // namespace
}  // namespace teratron::testing
