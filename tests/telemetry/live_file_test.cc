// live.json: reads back as it was written, and refuses everything else with one error.
#include "telemetry/live_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "base/temporary_folder.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

LiveRun some_run() {
  return {
      .host = "host",
      .process = 12,
      .written_at = 1.5e9,
      .iteration = 3,
      .iterations = 10,
      .loss = 2.25,
      .tokens_per_second = 1000,
      .seconds_left = 60,
      .ranks = {{.rank = 1, .host = "other", .place = "a \"place\" \xff", .waits = true, .still = 0.5, .memory = 7}}};
}

TEST(LiveFile, ReadsBackAsItWasWritten) {
  const TemporaryFolder folder;
  const LiveRun run = some_run();
  ASSERT_TRUE(write_live_file(folder.path(), run));
  const auto file = folder.path() / kLiveFile;
  const LiveRun read = parse_live_run(read_file(file), file);
  EXPECT_EQ(read.process, 12);
  EXPECT_EQ(read.loss, 2.25);
  ASSERT_EQ(read.ranks.size(), 1U);
  EXPECT_THAT(read.ranks[0].place, HasSubstr("a \"place\" "));
  EXPECT_TRUE(read.ranks[0].waits);
  EXPECT_EQ(parse_live_run(read.to_json(), "x").to_json(), read.to_json());
  remove_live_file(folder.path());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(LiveFile, WhatCannotBeWrittenIsSaidAndLeavesNothing) {
  const TemporaryFolder folder;
  EXPECT_FALSE(write_live_file(folder.path() / "none", some_run()));
  std::filesystem::create_directory(folder.path() / kLiveFile);
  EXPECT_FALSE(write_live_file(folder.path(), some_run()));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "live.json.partial"));
}

TEST(LiveFile, AnythingElseIsOneErrorWithItsName) {
  const std::string whole = some_run().to_json();
  std::vector<std::string> wrong = {"", "garbage", "[]", "{}", whole + whole, "null"};
  for (std::size_t size = 0; size < whole.size(); size += 7) wrong.push_back(whole.substr(0, size));
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const char* const process : {"-1", "0", "1e300", "\"12\"", "99999999999999999999"}) {
    wrong.push_back(replaced("\"process\":12", std::string("\"process\":") + process));
  }
  wrong.push_back(replaced("\"memory_bytes\":7", "\"memory_bytes\":-7"));
  wrong.push_back(replaced("\"waits\":true", "\"waits\":1"));
  wrong.push_back(replaced("\"ranks\":[", "\"ranks\":[3,"));
  for (const std::string& text : wrong) {
    EXPECT_THAT(message_of<UserError>([&] { parse_live_run(text, "a/live.json"); }), HasSubstr("a/live.json")) << text;
  }
}

}  // namespace
}  // namespace teratron::testing
