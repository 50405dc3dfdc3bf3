// metrics.jsonl of a run that was stopped and resumed is the file of a run that was not.
#include "telemetry/metrics_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "base/temporary_folder.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

class MetricsLogTest : public ::testing::Test {
 protected:
  // Writes a run from one iteration to another: a line for each, every third with a second line.
  void run(std::int64_t from, std::int64_t to) {
    MetricsLog log(file_, from);
    for (std::int64_t iteration = from + 1; iteration <= to; ++iteration) {
      log.write(iteration, {{"loss", std::sqrt(static_cast<double>(iteration))}, {"samples", iteration * 4}});
      if (iteration % 3 == 0) log.write(iteration, {{"validation_loss", 1.0 / static_cast<double>(iteration)}});
    }
  }
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "metrics.jsonl";
};

TEST_F(MetricsLogTest, EveryLineIsAnObjectWithTheValuesExactly) {
  const double third = 1.0 / 3;
  {
    MetricsLog log(file_, 0);
    log.write(7, {{"loss", third}, {"samples", std::int64_t{1} << 60}, {"note", std::string("a \"b\"\n\xFF")}});
    // Each line is in the file before the next is written.
    EXPECT_EQ(nlohmann::json::parse(read_file(file_)).at("loss").get<double>(), third);
    log.write(8, {{"loss", std::numeric_limits<double>::quiet_NaN()}});
  }
  std::ifstream in(file_);
  std::string first, second;
  std::getline(in, first);
  std::getline(in, second);
  const auto object = nlohmann::json::parse(first);
  EXPECT_EQ(object.at("iteration"), 7);
  EXPECT_EQ(object.at("samples").get<std::int64_t>(), std::int64_t{1} << 60);
  EXPECT_THAT(object.at("note").get<std::string>(), HasSubstr("a \"b\"\n"));
  EXPECT_EQ(first.find("iteration"), 2U);
  EXPECT_TRUE(nlohmann::json::parse(second).at("loss").is_null());
}

TEST_F(MetricsLogTest, AResumedRunLeavesTheFileOfAnUninterruptedOne) {
  run(0, 12);
  const std::string uninterrupted = read_file(file_);
  for (std::int64_t stopped = 0; stopped <= 12; ++stopped) {
    for (const std::int64_t checkpoint : {std::int64_t{0}, stopped / 2, stopped}) {
      std::filesystem::remove(file_);
      run(0, stopped);
      run(checkpoint, 12);
      ASSERT_EQ(read_file(file_), uninterrupted) << "stopped at " << stopped << ", resumed from " << checkpoint;
    }
  }
}

TEST_F(MetricsLogTest, DropsMeasurementsOfARunsEndWhereALongerOneGoesOn) {
  run(0, 12);
  const std::string uninterrupted = read_file(file_);
  for (const std::int64_t stopped : {4, 5}) {  // no multiples of three, which have their line in any run
    std::filesystem::remove(file_);
    run(0, stopped);
    MetricsLog(file_, stopped).write(stopped, {{"validation_loss", 0.5}});
    const std::string ended = read_file(file_);
    EXPECT_EQ(MetricsLog(file_, stopped).dropped_lines(), 0);
    EXPECT_EQ(read_file(file_), ended);
    EXPECT_EQ(MetricsLog(file_, stopped, {"sample", "validation_loss"}).dropped_lines(), 1);
    run(stopped, 12);
    EXPECT_EQ(read_file(file_), uninterrupted) << stopped;
  }
}

TEST_F(MetricsLogTest, ALineCutShortByACrashIsDropped) {
  run(0, 5);
  const std::size_t kept = read_file(file_).size();
  run(5, 6);
  const std::string whole = read_file(file_);
  // A step that meets both line ends and many places within the lines; trimming waits for the disk each time.
  for (std::size_t size = kept; size <= whole.size(); size += (size == kept || size + 5 > whole.size()) ? 1 : 5) {
    std::ofstream(file_) << whole.substr(0, size);
    run(5, 6);
    ASSERT_EQ(read_file(file_), whole) << size;
  }
}

TEST_F(MetricsLogTest, DroppedLinesAreCounted) {
  run(0, 10);
  EXPECT_EQ(MetricsLog(file_, 10).dropped_lines(), 0);
  EXPECT_EQ(MetricsLog(file_, 8).dropped_lines(), 3);  // two iterations, one of them with two lines
}

TEST_F(MetricsLogTest, AFileOfSomethingElseIsRefusedAndLeftAlone) {
  for (const std::string content : {"a diary\n", "[1]\n", "{\"iteration\": \"one\"}\n", "{\"loss\": 1}\n"}) {
    const std::string text = "{\"iteration\":1}\n" + content;
    write_file_atomically(file_, text);
    EXPECT_THAT(message_of<UserError>([&] { MetricsLog log(file_, 5); }), HasSubstr("line 2 of '" + file_.string()));
    EXPECT_EQ(read_file(file_), text);
  }
}

TEST_F(MetricsLogTest, APlaceThatCannotBeWrittenIsTheEnvironmentsFault) {
  EXPECT_THROW(MetricsLog(folder_.path() / "missing" / "metrics.jsonl", 0), EnvironmentError);
  MetricsLog full("/dev/full", 0);
  EXPECT_THROW(full.write(1, {{"loss", 1.0}}), EnvironmentError);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_THROW(MetricsLog(file_, 0), EnvironmentError);  // nobody reads it; and does not wait
}

}  // namespace
}  // namespace teratron::testing
