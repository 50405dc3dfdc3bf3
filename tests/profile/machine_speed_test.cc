// Peak speed, the yardstick of MFU, is the most that was ever measured.
#include "profile/machine_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "comm/launch.h"
#include "ops/backend.h"
#include "profile/processor.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;

class PeakSpeed : public ::testing::Test {
 protected:
  PeakSpeed() { ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }
  ~PeakSpeed() override { ::unsetenv("XDG_CACHE_HOME"); }

  // Received by each rank.
  static std::vector<double> ask(int ranks) {
    std::vector<double> received;
    std::mutex mutex;
    run_ranks(detect_launch(TensorMemory::kHost), ranks, [&](Communicator& world) {
      const std::unique_ptr<Backend> backend = make_cpu_backend();
      const double flops = peak_flops(*backend, world);
      const std::lock_guard lock(mutex);
      received.push_back(flops);
    });
    return received;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> files;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_.path() / "teratron" / "peaks", none)) {
      files.push_back(entry.path());
    }
    return files;
  }

  static void say(const fs::path& file, double flops) {
    auto known = nlohmann::json::parse(read_file(file));
    known["flops_per_second"] = flops;
    write_file_atomically(file, known.dump());
  }
  // For so many ranks.
  double kept(int ranks) const {
    for (const fs::path& file : files()) {
      const auto known = nlohmann::json::parse(read_file(file));
      if (known.at("key").get<std::string>().ends_with(std::to_string(ranks) + " ranks")) {
        return known.at("flops_per_second");
      }
    }
    return 0;
  }

  TemporaryFolder folder_;
};

TEST_F(PeakSpeed, IsTheMostThatWasEverMeasuredByNumberOfRanksAndTheSameOnAllOfThem) {
  const std::vector<double> first = ask(2);
  EXPECT_GT(first[0], 1e8);
  EXPECT_EQ(first[1], first[0]);
  ASSERT_EQ(files().size(), 1U);
  say(files().front(), 1e21);
  EXPECT_EQ(ask(2), (std::vector{1e21, 1e21})) << "a slower measurement does not count";
  EXPECT_LT(ask(1).front(), 1e20);
  EXPECT_EQ(files().size(), 2U);
  say(files().front(), 12.5);
  say(files().back(), 12.5);
  const std::vector<double> again = ask(2);
  EXPECT_GT(again.front(), 1e8) << "a faster one does";
  EXPECT_GT(kept(2), 1e8);
}

TEST_F(PeakSpeed, IgnoresAFileOfAnotherMachine) {
  ask(1);
  ASSERT_EQ(files().size(), 1U);
  const fs::path file = files().front();
  say(file, 1e21);
  auto other = nlohmann::json::parse(read_file(file));
  other["key"] = "another machine";
  for (const std::string& text : {other.dump(), std::string("{\"key\": "), std::string("[]")}) {
    write_file_atomically(file, text);
    EXPECT_LT(ask(1).front(), 1e20) << text;
  }
}

TEST_F(PeakSpeed, ACacheThatCannotBeWrittenIsDoneWithout) {
  write_file_atomically(folder_.path() / "teratron", "a file");
  EXPECT_GT(ask(1).front(), 1e8);
}

// The first lines of /proc/cpuinfo on a Zen 4 and on an Ampere Altra.
TEST(Processor, IsNamedAsTheSystemNamesIt) {
  EXPECT_EQ(processor_in("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
                         "model name\t: AMD EPYC 9R14\nstepping\t: 1\n\nprocessor\t: 1\nmodel name\t: another\n"),
            "AMD EPYC 9R14 (family 25, model 17)");
  EXPECT_EQ(processor_in("processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n"
                         "CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n\n"),
            "Neoverse N1 (implementer 0x41, part 0xd0c)");
  EXPECT_EQ(processor_in("CPU implementer\t: 0x61\nCPU part\t: 0x022\n"),
            "Arm processor (implementer 0x61, part 0x022)");
  EXPECT_EQ(processor_in(""), "unknown (family , model )");
}

}  // namespace
}  // namespace teratron::testing
