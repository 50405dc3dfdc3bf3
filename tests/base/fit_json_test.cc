// Numbers beyond 64 bits and beyond doubles, and halves of surrogate pairs, become what every parser reads.
#include "base/json_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace teratron::testing {
namespace {

TEST(FitJson, WhatFitsStaysAndTheRestBecomesWhatIsNear) {
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
           {R"("not closed \)", R"("not closed \)"},
           {R"(["\ud83d\uDE00","\\ud83d"])", R"(["\ud83d\uDE00","\\ud83d"])"},
           {R"({"\uD83D":"a\ud83d\ud83d\ude00\ude00\u0041"})", R"({"\ufffd":"a\ufffd\ud83d\ude00\ufffd\u0041"})"},
           {"[1.e999,-.5e999,01e999,1.e-999,1e]", "[1.e999,-.5e999,01e999,1.e-999,1e]"},
           {"[1.0e+999,-0.5E999,2.5e-999]", "[1.7976931348623157e308,-1.7976931348623157e308,0.0]"},
           {"[-,--5,-+7,1.5.5,99999999999999999999-]", "[-,--5,-+7,1.5.5,99999999999999999999-]"},
           {R"("\ud8" + "\ud83)", R"("\ud8" + "\ud83)"}}) {
    EXPECT_EQ(fit_json(json), fitted) << json;
  }
  EXPECT_EQ(fit_json(std::string(400, '9')), "1.7976931348623157e308");
}

TEST(FitJson, ValuesThatNestTooDeepAreNone) {
  const auto nested = [](int depth) {
    const auto levels = static_cast<std::size_t>(depth);
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_FALSE(parse_fitted<nlohmann::json>(nested(kDeepestJson)).is_discarded());
  EXPECT_TRUE(parse_fitted<nlohmann::json>(nested(kDeepestJson + 1)).is_discarded());
  EXPECT_TRUE(parse_fitted<nlohmann::json>(nested(200'000)).is_discarded());
  EXPECT_TRUE(parse_fitted<nlohmann::json>("[-]").is_discarded());
}

}  // namespace
}  // namespace teratron::testing
