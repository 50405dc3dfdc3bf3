#include "runtime/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Ranks, TensorGroupsOnSeveralHostsAreWarnedOf) {
  const std::vector<std::string> hosts = {"one", "one", "one", "two", "two", "two"};
  EXPECT_EQ(warning_of_split_hosts({.tensor = 3, .data = 2}, hosts), "");
  EXPECT_EQ(warning_of_split_hosts({.pipeline = 3, .data = 2}, hosts), "");
  EXPECT_THAT(warning_of_split_hosts({.tensor = 2, .pipeline = 3}, hosts),
              AllOf(HasSubstr("ranks 2 to 3"), HasSubstr("(one, two)")));
  EXPECT_THAT(warning_of_split_hosts({.tensor = 6}, hosts), HasSubstr("ranks 0 to 5"));
}

}  // namespace
}  // namespace teratron::testing
