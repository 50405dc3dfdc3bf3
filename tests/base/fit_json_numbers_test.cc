// Numbers beyond 64 bits and beyond doubles become such that every parser reads.
#include "base/json_fields.h"

#include <gtest/gtest.h>

#include <utility>

namespace teratron::testing {
namespace {

TEST(JsonNumbers, ThatFitStayAndOthersBecomeNearOnes) {
  for (const auto& [json, fitted] : std::initializer_list<std::pair<const char*, const char*>>{
           {"0", "0"},
           {"-9223372036854775808", "-9223372036854775808"},
           {"18446744073709551615", "18446744073709551615"},
           {"18446744073709551616", "18446744073709551616.0"},
           {"-9223372036854775809", "-9223372036854775809.0"},
           {"[1e308,1e309,-1e400,1e-400]", "[1e308,1.7976931348623157e308,-1.7976931348623157e308,0.0]"},
           {R"({"a":NaN,"b":[Infinity,-Infinity]})", R"({"a":null,"b":[null,null]})"},
           {R"({"NaN 1e999":"\"99999999999999999999","b":1e999})",
            R"({"NaN 1e999":"\"99999999999999999999","b":1.7976931348623157e308})"},
           {R"("not closed \)", R"("not closed \)"}}) {
    EXPECT_EQ(fit_json_numbers(json), fitted) << json;
  }
  EXPECT_EQ(fit_json_numbers(std::string(400, '9')), "1.7976931348623157e308");
}

}  // namespace
}  // namespace teratron::testing
