// Cores of a host among its processes.
#include "comm/core_share.h"

#include <gtest/gtest.h>

namespace teratron::testing {
namespace {

TEST(CoreShare, EveryCoreGoesToOneOfTheProcessesThatMayUseIt) {
  const auto shares = [](const std::vector<std::vector<int>>& cores_of_process) {
    std::vector<int> result;
    for (std::size_t i = 0; i < cores_of_process.size(); ++i) result.push_back(core_share(cores_of_process, i));
    return result;
  };
  EXPECT_EQ(shares({{0, 1, 2, 3, 4}}), (std::vector<int>{5}));
  EXPECT_EQ(shares({{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}}), (std::vector<int>{3, 2}));
  EXPECT_EQ(shares({{0, 1}, {2, 3}}), (std::vector<int>{2, 2}));    // bound by mpirun
  EXPECT_EQ(shares({{0, 1}, {0}}), (std::vector<int>{1, 1}));       // the first can give way
  EXPECT_EQ(shares({{0}, {0}, {0}}), (std::vector<int>{1, 1, 1}));  // fewer cores than processes
  EXPECT_EQ(shares({{0, 1, 2, 3}, {0, 1}, {2, 3}}), (std::vector<int>{2, 1, 1}));
  EXPECT_EQ(shares({{1023, 1024, 4095}, {4095}}), (std::vector<int>{2, 1}));
  EXPECT_EQ(shares({{}, {7}}), (std::vector<int>{1, 1}));  // a system that does not tell
}

}  // namespace
}  // namespace teratron::testing
