#include "base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Checks, AFailedComparisonNamesBothValuesAndThePlace) {
  const int line = __LINE__ + 2;
  try {
    check_equal(3, 4, "rows of the table");
    FAIL() << "nothing was thrown";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("rows of the table: got 3, expected 4"),
                                    HasSubstr(fmt::format("error_test.cc:{}", line))));
  }
}

TEST(Checks, PassWhereTheyHold) {
  EXPECT_NO_THROW(check(true, "always"));
  EXPECT_NO_THROW(check_equal(std::string("a"), "a", "always"));
  EXPECT_THROW(check(false, "never"), InternalError);
}

TEST(Errors, CarryTheFormattedMessageAndAreDistinguished) {
  try {
    throw_user_error("hidden_size {} is not divisible by {} heads", 1000, 16);
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "hidden_size 1000 is not divisible by 16 heads");
  }
  EXPECT_THROW(throw_environment_error("disk {}", "full"), EnvironmentError);
}

}  // namespace
}  // namespace teratron::testing
