// Runs the teratron binary as a user would and keeps what came of it. The head of all tests here.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/child_program.h"
#include "base/files/file.h"
#include "base/temporary_folder.h"

namespace teratron::testing {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

using Words = std::vector<std::string>;

inline Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The words of a text, which white space separates.
inline Words words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
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
inline Json json_of(const Words& arguments) {
  const Outcome outcome = run_teratron(with(arguments, {"--json", "-"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  if (arguments.front() != "generate") {  // which says all it has to say in the JSON
    EXPECT_FALSE(outcome.errors.empty());
  }
  Json json = Json::parse(outcome.output, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(json.is_object()) << outcome.output;
  return json;
}

// Tests with a folder each.
class FolderTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  const TemporaryFolder folder_;
};

}  // namespace teratron::testing
