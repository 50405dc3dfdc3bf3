// Random disturbances of random commands: kills at any call that changes files and at any time, calls that fail, full
// disks, and power failures, after which a disk holds only what was synced. Then the command is run again, or goes on
// as its documentation says, and its results have the bytes of a run that nobody disturbed.
//   torture_test --seeds 51-500      other cases than the first 50
//   torture_test --seeds 17          one of them again: a case is a function of its number, but for kills by the clock
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cstdio>
#include <map>
#include <string_view>

#include "torture/torment.h"

namespace teratron::torture {
namespace {

// The cases of ./check. Those of ./check --slow are named there.
constexpr std::string_view kSeeds = "1-50";

class Torture : public ::testing::Test {
 public:
  explicit Torture(std::uint64_t seed) : seed_(seed) {}

  void TestBody() override {
    static const testing::TemporaryFolder folder;
    static const Workplace place(folder.path());
    static const std::vector<Scenario> scenarios = place.scenarios();
    static std::map<std::string, Reference> references;
    const Scenario& scenario = scenarios[seed_ % scenarios.size()];
    SCOPED_TRACE(fmt::format("again: torture_test --seeds {}", seed_));
    if (scenario.processes > 1 && std::string_view(TERATRON_MPIRUN).empty()) GTEST_SKIP() << "mpirun was not found";
    Torment torment(place, scenario, folder / "calls");
    if (!references.contains(scenario.name)) references[scenario.name] = torment.refer();
    RandomSequence random({.seed = seed_});
    torment.disturb(references[scenario.name], random);
  }

 private:
  const std::uint64_t seed_;
};

// "FIRST-LAST", or one number.
bool register_cases(std::string_view seeds) {
  std::uint64_t first = 0, last = 0;
  const auto read = [&](std::uint64_t& number) {
    const auto [end, error] = std::from_chars(seeds.data(), seeds.data() + seeds.size(), number);
    seeds.remove_prefix(static_cast<std::size_t>(end - seeds.data()));
    return error == std::errc();
  };
  if (!read(first)) return false;
  last = first;
  if (seeds.starts_with('-')) {
    seeds.remove_prefix(1);
    if (!read(last)) return false;
  }
  if (!seeds.empty() || last < first) return false;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    ::testing::RegisterTest("Torture", fmt::format("Seed{}", seed).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [seed]() -> ::testing::Test* { return new Torture(seed); });
  }
  return true;
}

}  // namespace
}  // namespace teratron::torture

int main(int count, char** words) {
  ::testing::InitGoogleTest(&count, words);
  const bool has_seeds = count == 3 && std::string_view(words[1]) == "--seeds";
  if ((count > 1 && !has_seeds) ||
      !teratron::torture::register_cases(has_seeds ? words[2] : teratron::torture::kSeeds)) {
    std::fputs("usage: torture_test [--seeds FIRST-LAST | --seeds NUMBER]\n", stderr);
    return 2;
  }
  if (has_seeds) GTEST_FLAG_SET(filter, "Torture.*");
  return RUN_ALL_TESTS();
}
