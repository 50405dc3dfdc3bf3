// Cores of a host among its processes.
#include "comm/core_share.h"

#include <gtest/gtest.h>

namespace teratron {
namespace {

TEST(CoreShare, EveryCoreGoesToOneOfTheProcessesThatMayUseIt) {
  using Cores = std::vector<std::vector<int>>;
  const auto shares = [](const Cores& cores) {
    std::vector<int> result;
    for (std::size_t process = 0; process < cores.size(); ++process) result.push_back(core_share(cores, process));
    return result;
  };
  EXPECT_EQ(shares({{0, 1, 2, 3, 4}}), (std::vector<int>{5}));
  EXPECT_EQ(shares({{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}}), (std::vector<int>{3, 2}));
  EXPECT_EQ(shares({{0, 1}, {2, 3}}), (std::vector<int>{2, 2}));    // bound by mpirun
  EXPECT_EQ(shares({{0, 1}, {0}}), (std::vector<int>{1, 1}));       // the first can give way
  EXPECT_EQ(shares({{0}, {0}, {0}}), (std::vector<int>{1, 1, 1}));  // fewer cores than processes
  EXPECT_EQ(shares({{0, 1, 2, 3}, {0, 1}, {2, 3}}), (std::vector<int>{2, 1, 1}));
  EXPECT_EQ(shares({{}, {7}}), (std::vector<int>{1, 1}));  // a system that does not tell
}

TEST(CoreShare, CoresSurviveAsText) {
  for (const std::vector<int>& cores : {std::vector<int>{}, {3}, {0, 1, 17, 1023}}) {
    EXPECT_EQ(cores_from_text(to_text(cores)), cores);
  }
  EXPECT_FALSE(own_cores().empty());
}

}  // namespace
}  // namespace teratron
