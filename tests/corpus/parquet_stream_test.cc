// Parquet through the stages: rows come out as lines of JSON with all their columns, and a run that was ended goes on.
#include <gtest/gtest.h>

#include "base/error.h"
#include "corpus/dedup/dedup_stage.h"
#include "corpus/stage_fixture.h"
#include "parquet/golden_files.h"

namespace teratron {
namespace {

using testing::golden_parquet;

class ParquetStream : public testing::StageTest {
 protected:
  std::string run(const std::string& file, const std::function<int()>& end_signal = {}) {
    StreamOptions given = options();
    given.files = {golden_parquet() / file};
    given.batch_bytes = 500;
    given.journal_seconds = 0;
    given.end_signal = end_signal;
    const auto stages = testing::stages_of(DedupSettings{}.make(given));
    counts_ = run_stages(stages, given);
    return read_file(given.out);
  }
};

TEST_F(ParquetStream, RowsComeOutAsTheirLinesWouldWithAllColumns) {
  const std::string lines = run("fineweb.jsonl");
  EXPECT_GT(counts_.kept, 5);
  EXPECT_LT(counts_.kept, counts_.documents);
  for (const char* file : {"fineweb-snappy.parquet", "fineweb-zstd.parquet", "fineweb-deltas.parquet"}) {
    EXPECT_EQ(run(file), lines) << file;
  }
}

TEST_F(ParquetStream, RunsThatWereEndedGoOnWithinAFile) {
  const std::string whole = run("fineweb-zstd.parquet");
  std::filesystem::remove(folder_ / "out.jsonl");
  int ended = 0;
  for (bool is_done = false; !is_done; ended += is_done ? 0 : 1) {
    int batches = 0;
    try {
      const std::string resumed = run("fineweb-zstd.parquet", [&] { return ++batches == 2 ? 15 : 0; });
      EXPECT_EQ(resumed, whole);
      is_done = true;
    } catch (const EndedBySignal&) {
      ASSERT_LT(ended, 100);
    }
  }
  EXPECT_GT(ended, 2);
}

}  // namespace
}  // namespace teratron
