// Files of short texts, such as prompts: a text a line, or JSON, whatever the file's name.
#include "data/text/text_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "data/dataset_fixture.h"
#include "parquet/golden_files.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const TextKeys kKeys{.names = {"prompt", "text"}, .advice = "put it there"};

class TextList : public ::testing::Test {
 protected:
  std::vector<std::string> read(const std::string& content, BlankLines blank = BlankLines::kSkip,
                                TextFormat format = TextFormat::kAuto, const std::string& name = "p.txt") const {
    write_file_atomically(folder_ / name, content);
    return read_text_list(folder_ / name, format, kKeys, blank);
  }
  std::string failure(const std::string& content, TextFormat format = TextFormat::kAuto) const {
    return message_of<UserError>([&] { read(content, BlankLines::kSkip, format); });
  }
  TemporaryFolder folder_;
};

TEST_F(TextList, HasLinesWhateverEndsThem) {
  EXPECT_THAT(teratron::lines_of("a\r\n\n b \nc"), ElementsAre("a", "", " b ", "c"));
  EXPECT_THAT(teratron::lines_of("a\n"), ElementsAre("a"));
  EXPECT_TRUE(teratron::lines_of("").empty());
  const std::string text = "\xEF\xBB\xBFone\r\n\n  two \r\n \t\r\n\r\nthree";
  EXPECT_THAT(read(text), ElementsAre("one", "  two ", "three"));
  EXPECT_THAT(read(text, BlankLines::kKeep), ElementsAre("one", "", "  two ", " \t", "", "three"));
}

TEST_F(TextList, ComesBackAsItWasWrittenWithAnyEndings) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 100; ++trial) {
    const int form = static_cast<int>(random() % 3);  // lines, JSON lines, an array
    std::vector<std::string> written;
    std::string text = form == 2 ? " [\n" : "";
    for (std::size_t i = 1 + random() % 5; i-- > 0;) {
      std::string prompt = form > 0 && random() % 4 == 0 ? "" : "p";
      for (std::size_t length = prompt.empty() ? 0 : random() % 6; length-- > 0;) prompt += "ab {]["[random() % 6];
      std::string line = prompt;
      if (form > 0) {
        line = (random() % 2 == 0 ? "{\"prompt\": \"" : "{\"n\": 1e999, \"text\": \"") + prompt + "\"}";
      }
      text += line + (form == 2 ? i > 0 ? " ,\n" : "\r\n]" : random() % 2 == 0 ? "\n" : "\r\n");
      if (form < 2 && random() % 4 == 0) text += "\n\n";
      written.push_back(prompt);
    }
    EXPECT_EQ(read(text), written) << text;
  }
}

TEST_F(TextList, TakesTheFirstKeyOfJsonThatIsThere) {
  EXPECT_THAT(read("{\"text\": \"b\", \"prompt\": \"a\"}\n{\"text\": \"c\\n\"}\r\n{\"prompt\": \"\"}"),
              ElementsAre("a", "c\n", ""));
  EXPECT_THAT(read("{\"text\": \"b\", \"n\": 1e999, \"prompt\": \"a\"}\n"), ElementsAre("a"));
}

TEST_F(TextList, ThatIsNoneIsNamedWithItsLine) {
  EXPECT_THAT(failure("{\"prompt\": \"a\"}\n\n{\"other\": 1}"),
              AllOf(HasSubstr("p.txt:3"), HasSubstr("no \"prompt\" or \"text\" (its keys: \"other\"); put it there")));
  EXPECT_THAT(failure("{\"prompt\": 3}"), HasSubstr("p.txt:1: \"prompt\" is a number, not a string; put it there"));
  EXPECT_THAT(failure("plain", TextFormat::kJsonLines), HasSubstr("p.txt:1"));
  EXPECT_THAT(failure("\n \r\n"), HasSubstr("holds no text"));
}

TEST_F(TextList, IsWhatTheUserSaysWhateverItLooksLike) {
  const std::string line = "{\"prompt\": \"a\"}";
  EXPECT_THAT(read(line), ElementsAre("a"));
  EXPECT_THAT(read(line, BlankLines::kSkip, TextFormat::kText), ElementsAre(line));
  EXPECT_THAT(read("<html>", BlankLines::kSkip, TextFormat::kText), ElementsAre("<html>"));
}

TEST_F(TextList, AdvisesTheFlagThatTheCommandHas) {
  for (const char* text : {"caf\xE9", "<!DOCTYPE html>\n<html></html>\n"}) {
    write_file_atomically(folder_ / "a", text);
    const auto refusal = [&](std::string_view flag) {
      return message_of<UserError>(
          [&] { read_text_list(folder_ / "a", TextFormat::kAuto, kKeys, BlankLines::kSkip, flag); });
    };
    EXPECT_THAT(refusal("--form"), HasSubstr("with --form text"));
    EXPECT_THAT(refusal(""), AllOf(HasSubstr("/a' "), Not(HasSubstr("--format"))));
  }
}

TEST_F(TextList, MayLookLikeSettings) {
  EXPECT_THAT(read("model = \"tiny\"\nlayers = 3\n"), ElementsAre("model = \"tiny\"", "layers = 3"));
  EXPECT_THAT(failure("[model]\nlayers = 3\n"), HasSubstr("settings"));
}

TEST_F(TextList, IsNoPlainText) {
  write_file_atomically(folder_ / "a", "\xEF\xBB\xBFone\ntwo");
  EXPECT_EQ(read_plain_text(folder_ / "a", TextFormat::kAuto, "the text"), "one\ntwo");
  write_file_atomically(folder_ / "b", "{\"text\": \"a\"}\n");
  EXPECT_THAT(message_of<UserError>([&] { read_plain_text(folder_ / "b", TextFormat::kAuto, "the text"); }),
              HasSubstr("is to be the text as plain text"));
  write_file_atomically(folder_ / "c", "{\"text\": a}\n");
  EXPECT_THAT(message_of<UserError>([&] { read_plain_text(folder_ / "c", TextFormat::kAuto, "the text"); }),
              AllOf(HasSubstr("--format text"), Not(HasSubstr("jsonl"))));
  const std::filesystem::path table = golden_parquet() / "fineweb-snappy.parquet";
  EXPECT_THAT(message_of<UserError>([&] { read_plain_text(table, TextFormat::kAuto, "the text"); }),
              AllOf(HasSubstr("holds a Parquet table"), Not(HasSubstr("--format"))));
}

}  // namespace
}  // namespace teratron::testing
