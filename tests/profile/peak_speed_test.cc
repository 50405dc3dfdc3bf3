// What MFU is counted against is measured once and then known.
#include "profile/peak_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "comm/launch.h"
#include "ops/backend.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

class PeakSpeed : public ::testing::Test {
 protected:
  PeakSpeed() { ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }
  ~PeakSpeed() override { ::unsetenv("XDG_CACHE_HOME"); }

  // What each rank is told.
  static std::vector<double> ask(int ranks) {
    std::vector<double> told;
    std::mutex mutex;
    run_ranks(detect_launch(TensorMemory::kHost), ranks, [&](Communicator& world) {
      const std::unique_ptr<Backend> backend = make_cpu_backend();
      const double flops = peak_flops(*backend, world);
      const std::lock_guard lock(mutex);
      told.push_back(flops);
    });
    return told;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> files;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_.path() / "teratron" / "peaks", none)) {
      files.push_back(entry.path());
    }
    return files;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(PeakSpeed, IsMeasuredOnceForEachNumberOfRanksAndIsTheSameOnAllOfThem) {
  const std::vector<double> first = ask(2);
  EXPECT_GT(first[0], 1e8);
  EXPECT_EQ(first[1], first[0]);
  ASSERT_EQ(files().size(), 1U);
  EXPECT_EQ(ask(2), first);  // to the last bit: no measurement is that
  ask(1);
  EXPECT_EQ(files().size(), 2U);
  EXPECT_EQ(ask(2), first);
}

TEST_F(PeakSpeed, OfAFileThatSaysSomethingElseNothingIsBelieved) {
  ask(1);
  ASSERT_EQ(files().size(), 1U);
  const fs::path file = files().front();
  auto known = nlohmann::json::parse(read_file(file));
  known["flops_per_second"] = 12.5;
  write_file_atomically(file, known.dump());
  EXPECT_EQ(ask(1), std::vector<double>{12.5});
  nlohmann::json other = known;
  other["key"] = "another machine";
  for (const std::string& text : {other.dump(), std::string("{\"key\": "), std::string("[]")}) {
    write_file_atomically(file, text);
    EXPECT_GT(ask(1).front(), 1e8) << text;
  }
}

TEST_F(PeakSpeed, ACacheThatCannotBeWrittenIsDoneWithout) {
  write_file_atomically(folder_.path() / "teratron", "a file");
  EXPECT_GT(ask(1).front(), 1e8);
}

}  // namespace
}  // namespace teratron
