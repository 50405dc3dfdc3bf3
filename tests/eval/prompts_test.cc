#include "eval/generation/prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "base/files/file.h"

namespace teratron {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of_prompts(std::string_view text, bool json_lines) {
  try {
    prompts_of(text, json_lines, "'p'");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Prompts, AreLinesWhateverEndsThem) {
  EXPECT_THAT(prompts_of("\xEF\xBB\xBFone\r\n\n  two \r\n \t\r\n\r\nthree", false, "'p'"),
              ElementsAre("one", "  two ", "three"));
  EXPECT_THAT(prompts_of("one\n", false, "'p'"), ElementsAre("one"));
}

TEST(Prompts, ComeBackAsTheyWereWrittenWithAnyEndings) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    const bool json_lines = random() % 2 == 0;
    std::vector<std::string> written;
    std::string text;
    for (std::size_t i = 1 + random() % 5; i-- > 0;) {
      std::string prompt = json_lines && random() % 4 == 0 ? "" : "p";
      for (std::size_t length = prompt.empty() ? 0 : random() % 6; length-- > 0;) prompt += "ab {é\""[random() % 5];
      std::string line = prompt;
      if (json_lines) {
        std::string quoted;
        for (const char c : prompt) quoted += (c == '"' ? "\\" : "") + std::string(1, c);
        line = (random() % 2 == 0 ? "{\"prompt\": \"" : "{\"n\": 1, \"text\": \"") + quoted + "\"}";
      }
      text += line;
      if (i > 0 || random() % 2 == 0) text += random() % 2 == 0 ? "\n" : "\r\n";
      if (random() % 4 == 0) text += "\n\n";
      written.push_back(prompt);
      if (!text.ends_with('\n') && i > 0) text += "\n";
    }
    // Bytes of characters that are cut apart are no JSON.
    if (json_lines && text.find('\xC3') != std::string::npos) continue;
    EXPECT_EQ(prompts_of(text, json_lines, "'p'"), written) << text;
  }
}

TEST(Prompts, OfJsonStandUnderPromptOrText) {
  EXPECT_THAT(
      prompts_of("{\"text\": \"b\", \"prompt\": \"a\"}\n{\"text\": \"c\\n\"}\r\n{\"prompt\": \"\"}", true, "'p'"),
      ElementsAre("a", "c\n", ""));
}

TEST(Prompts, ThatAreNoneAreNamedWithTheirLine) {
  EXPECT_THAT(error_of_prompts("{\"prompt\": \"a\"}\n\n{\"other\": 1}", true),
              AllOf(HasSubstr("'p', line 3"), HasSubstr("{\"prompt\":")));
  EXPECT_THAT(error_of_prompts("{\"prompt\": 3}", true), HasSubstr("line 1: \"prompt\" is not a string"));
  EXPECT_THAT(error_of_prompts("plain", true), HasSubstr("line 1"));
  EXPECT_THAT(error_of_prompts("\n \r\n", false), HasSubstr("holds no prompt"));
}

TEST(Prompts, AreJsonByTheFilesNameUnlessItIsSaidOtherwise) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "prompts_test";
  std::filesystem::create_directories(folder);
  const std::string line = "{\"prompt\": \"a\"}";
  for (const char* name : {"p.jsonl", "p.txt"}) write_file_atomically(folder / name, line + "\n");
  EXPECT_THAT(read_prompts(folder / "p.jsonl", PromptFormat::kByName), ElementsAre("a"));
  EXPECT_THAT(read_prompts(folder / "p.txt", PromptFormat::kByName), ElementsAre(line));
  EXPECT_THAT(read_prompts(folder / "p.jsonl", PromptFormat::kLines), ElementsAre(line));
  EXPECT_THAT(read_prompts(folder / "p.txt", PromptFormat::kJsonLines), ElementsAre("a"));
}

}  // namespace
}  // namespace teratron
