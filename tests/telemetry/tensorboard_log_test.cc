// A run that was stopped and goes on leaves the records of one that was not, in any number of files.
#include "telemetry/tensorboard_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "base/philox.h"
#include "base/temporary_folder.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using Point = std::pair<std::string, std::int64_t>;  // tag and step

constexpr std::int64_t kBatch = 4;

class TensorBoardLogTest : public ::testing::Test {
 protected:
  // Writes a run of four samples per iteration, over both.
  void run(std::int64_t from, std::int64_t to) {
    TensorBoardLog log(folder_, [&](std::int64_t step, std::string_view tag) {
      return step <= (tag.ends_with("samples") ? kBatch * from : from);
    });
    for (std::int64_t iteration = from + 1; iteration <= to; ++iteration) {
      log.scalars({{iteration, {{"loss", 1.0F}, {"rate", 2.0F}}}, {kBatch * iteration, {{"loss vs samples", 1.0F}}}});
      if (iteration % 3 == 0) log.scalars({{iteration, {{"validation", 1.0F}}}});
    }
  }

  // In the order in which TensorBoard reads them. A file is read to its first fault, as TensorBoard does.
  std::vector<Point> points() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_)) files.push_back(entry.path());
    std::ranges::sort(files);
    std::vector<Point> points;
    for (const fs::path& file : files) {
      const std::string content = read_file(file);
      std::string_view rest = content;
      while (const std::optional<EventRecord> record = first_record(rest)) {
        if (!record->tag.empty()) points.emplace_back(record->tag, record->step);
        rest.remove_prefix(record->bytes.size());
      }
    }
    return points;
  }

  fs::path only_file() const { return fs::directory_iterator(folder_)->path(); }

  TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path() / "a" / "b";  // made with those above it
};

TEST_F(TensorBoardLogTest, ARunThatGoesOnLeavesTheRecordsOfAnUninterruptedOne) {
  run(0, 12);
  const std::vector<Point> uninterrupted = points();
  ASSERT_EQ(uninterrupted.size(), 28U);
  RandomSequence random(RandomStream{.seed = 11});
  for (int trial = 0; trial < 20; ++trial) {
    fs::remove_all(folder_);
    std::int64_t done = 0;
    for (std::ptrdiff_t runs = 0; done < 12; ++runs) {
      // A file each, though all are of one process and, mostly, of one second.
      std::error_code none;
      ASSERT_EQ(std::distance(fs::directory_iterator(folder_, none), {}), runs);
      const auto to = done + 1 + static_cast<std::int64_t>(random.below(static_cast<std::size_t>(12 - done)));
      run(done, to);
      done =
          to < 12 ? static_cast<std::int64_t>(random.below(static_cast<std::size_t>(to) + 1)) : 12;  // the checkpoint
    }
    ASSERT_EQ(points(), uninterrupted) << trial;
  }
}

TEST_F(TensorBoardLogTest, RecordsFollowOneThatACrashCutShort) {
  run(0, 6);
  const fs::path file = only_file();
  const std::string whole = read_file(file);
  run(6, 12);
  const std::vector<Point> all = points();
  for (std::size_t cut = 1; cut < 60; cut += 7) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write_file_atomically(file, whole.substr(0, whole.size() - cut));
    run(5, 12);
    ASSERT_EQ(points(), all) << cut;
  }
}

TEST_F(TensorBoardLogTest, FilesOfOthersStay) {
  EXPECT_FALSE(TensorBoardLog::holds_records(folder_));
  fs::create_directories(folder_);
  const fs::path other = folder_ / "events.out.tfevents.9999999998.host.1.0";
  write_file_atomically(other, "no records");
  EXPECT_FALSE(TensorBoardLog::holds_records(folder_));
  run(0, 3);
  EXPECT_EQ(read_file(other), "no records");
  EXPECT_TRUE(TensorBoardLog::holds_records(folder_));
}

TEST_F(TensorBoardLogTest, LinksThatLeadNowhereAreNoFaultOfARun) {
  fs::create_directories(folder_);
  for (const char* const name : {"notes", "events.out.tfevents.0000000001.host.1.0"}) {
    fs::create_symlink(folder_ / name, folder_ / name);  // stat() of it fails
  }
  EXPECT_FALSE(TensorBoardLog::holds_records(folder_));
  run(0, 3);
  EXPECT_TRUE(TensorBoardLog::holds_records(folder_));
}

TEST_F(TensorBoardLogTest, ANewFilesNameHasTenDigitsBesideNamesWithMore) {
  fs::create_directories(folder_);
  for (const char* const digits : {"10000000000", "9223372036854775807"}) {
    write_file_atomically(folder_ / fmt::format("events.out.tfevents.{}.host.1.0", digits), "no records");
  }
  run(0, 1);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
  EXPECT_THAT(names, ::testing::Contains(::testing::MatchesRegex("events.out.tfevents.[0-9]{10}\\..*teratron")));
}

TEST_F(TensorBoardLogTest, AFileInItsFoldersPlaceIsTheUsersFault) {
  write_file_atomically(temporary_.path() / "a", "a file");
  EXPECT_THROW(run(0, 1), UserError);
}

}  // namespace
}  // namespace teratron::testing
