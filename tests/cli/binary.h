// Runs the teratron binary as a user would and keeps what came of it.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/child_program.h"

namespace teratron::testing {

using Words = std::vector<std::string>;

inline Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

#ifdef TERATRON_WITHOUT_TEXT_TOOLS
inline constexpr bool kHasTextTools = false;  // data extract and data langid
#else
inline constexpr bool kHasTextTools = true;
#endif

// `standard_output` is where its output goes instead of into the Outcome, where given.
inline Outcome run_teratron(const Words& arguments, const std::string& standard_output = "") {
  return ChildProgram(with({TERATRON_BINARY}, arguments), {}, standard_output).wait();
}

inline Outcome must(const Words& arguments) {
  Outcome outcome = run_teratron(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  return outcome;
}

// Standard output of a command that must succeed.
inline std::string succeed(const Words& arguments) { return must(arguments).output; }

// Standard error of a command that must be refused as the user's fault.
inline std::string refused(const Words& arguments) {
  const Outcome outcome = run_teratron(arguments);
  EXPECT_EQ(outcome.exit_code, 2) << ::testing::PrintToString(arguments) << outcome.output << outcome.errors;
  return outcome.errors;
}

// With --json -, standard output is one JSON object and nothing else; people's text goes to standard error.
inline nlohmann::json json_of(const Words& arguments) {
  const Outcome outcome = run_teratron(with(arguments, {"--json", "-"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  if (arguments.front() != "generate") {  // which says all it has to say in the JSON
    EXPECT_FALSE(outcome.errors.empty());
  }
  nlohmann::json json = nlohmann::json::parse(outcome.output, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(json.is_object()) << outcome.output;
  return json;
}

}  // namespace teratron::testing
