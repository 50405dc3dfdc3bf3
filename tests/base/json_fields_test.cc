// JSON that a stranger may have made.
#include "base/json_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace teratron::testing {
namespace {

TEST(ParsedJson, IsRefusedAtGreatDepthAndCanBeCopiedElse) {
  const auto nested = [](std::size_t depth, const std::string& open, const std::string& close) {
    std::string text = "{\"a\": \"]}\\\"[\", \"b\": ";
    for (std::size_t i = 0; i < depth; ++i) text += open;
    text += "1";
    for (std::size_t i = 0; i < depth; ++i) text += close;
    return text + "}";
  };
  for (const auto& [open, close] : {std::pair<std::string, std::string>{"[", "]"}, {"{\"x\": ", "}"}}) {
    for (const std::size_t depth : {1'000, 100'000, 2'000'000}) {
      EXPECT_THROW(parse_json_object(nested(depth, open, close), "x.json"), UserError) << depth;
      EXPECT_THROW(parse_json_object(nested(depth, open, ""), "x.json"), UserError) << depth;
    }
    const nlohmann::json json = parse_json_object(nested(999, open, close), "x.json");
    const nlohmann::json copy = json;
    EXPECT_EQ(copy, json);
  }
}

}  // namespace
}  // namespace teratron::testing
