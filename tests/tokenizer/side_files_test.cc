// What stands beside a vocabulary (tokenizer_config.json, special_tokens_map.json, added_tokens.json) is read as
// transformers does, or refused by name: every cell of tests/golden/side_files.json, which transformers made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/message_of.h"
#include "tokenizer/tokenizer_fixture.h"

namespace teratron::testing {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;

json golden() {
  const std::filesystem::path path = std::filesystem::path(TERATRON_SOURCE_DIR) / "tests/golden/side_files.json";
  return json::parse(read_file(path));
}

// The one that the golden file leaves out.
std::string long_text() {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "hello";
  for (int i = 0; i < 30'000; ++i) text += "\nhello world ";
  return text + "hello";
}

void write_files(const std::filesystem::path& folder, const json& files) {
  for (const auto& [name, content] : files.items()) {
    std::ofstream(folder / name, std::ios::binary)
        << (content.is_string() ? content.get<std::string>() : content.dump());
  }
}

// As the golden file has ids: long ones by their number and sums.
json shortened(const std::vector<std::int32_t>& ids) {
  if (ids.size() < 100) return ids;
  std::int64_t sum = 0, by_place = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    sum += ids[i];
    by_place += ids[i] * static_cast<std::int64_t>(1 + i % 1000);
  }
  return {{"count", ids.size()}, {"sum", sum}, {"by_place", by_place}};
}

TEST(SideFiles, AreReadAsTransformersDoesOrRefusedByName) {
  for (const json& kind : golden()) {
    for (const json& cell : kind["cells"]) {
      const TemporaryFolder folder;
      write_files(folder.path(), kind["vocabulary"]);
      write_files(folder.path(), cell["files"]);
      if (!cell["read"]) {
        EXPECT_THAT(
            message_of<UserError>([&] { Tokenizer::load(folder.path()); }),
            AnyOf(HasSubstr("tokenizer_config.json'"), HasSubstr("added_tokens.json'"), HasSubstr("vocab.json'")))
            << cell["files"];
        continue;
      }
      SCOPED_TRACE(cell["files"].dump());
      const Tokenizer tokenizer = Tokenizer::load(folder.path());
      const TemporaryFolder again;
      tokenizer.save(again.path());
      const Tokenizer saved = Tokenizer::load(again.path());
      EXPECT_EQ(saved.hash(), tokenizer.hash());
      for (std::size_t i = 0; i < kind["texts"].size(); ++i) {
        const std::string text = kind["texts"][i].is_null() ? long_text() : kind["texts"][i].get<std::string>();
        EXPECT_EQ(shortened(tokenizer.encode(text, SpecialText::kToken)), cell["ids"][i]) << text.substr(0, 80);
        if (kind["texts"][i].is_null()) continue;
        EXPECT_EQ(shortened(saved.encode(text, SpecialText::kToken)), cell["ids"][i]) << text;
      }
    }
  }
}

class PrefixSpace : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const json& kind : golden()) {
      if (kind["kind"] == "byte pair") write_files(folder_.path(), kind["vocabulary"]);
    }
    write("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": true})");
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  TemporaryFolder folder_;
};

TEST_F(PrefixSpace, IsTheSameForThreadsOffsetsAndBeginnings) {
  const Tokenizer tokenizer = Tokenizer::load(folder_.path());
  for (const std::string& text :
       {std::string("hello\nhello"), std::string("\t\thello hello"), long_text(), std::string()}) {
    const std::vector<std::int32_t> ids = tokenizer.encode(text);
    EXPECT_TRUE(tokenizer.encode_parallel(text) == ids);
    std::vector<std::int32_t> beginning;
    tokenizer.encode_beginning_to(text, 7, beginning);
    ASSERT_LE(beginning.size(), ids.size());
    EXPECT_GE(beginning.size(), std::min<std::size_t>(7, ids.size()));
    EXPECT_TRUE(std::equal(beginning.begin(), beginning.end(), ids.begin()));
    std::uint32_t at = 0;
    for (const TokenSpan& span : tokenizer.encode_with_offsets(text)) {
      EXPECT_EQ(span.begin, at);
      at = span.end;
    }
    EXPECT_EQ(at, text.size());
  }
}

TEST_F(PrefixSpace, IsAnotherTokenizerAndComesFromTokenizerJsonToo) {
  const Tokenizer with = Tokenizer::load(folder_.path());
  with.save(folder_ / "saved");
  std::filesystem::remove(folder_ / "tokenizer_config.json");
  const Tokenizer without = Tokenizer::load(folder_.path());
  EXPECT_NE(with.hash(), without.hash());
  EXPECT_NE(with.encode("hello"), without.encode("hello"));
  // transformers' classes go by the configuration, whatever tokenizer.json says; its general ones by the latter.
  const auto first_id = [&](const std::string& config) {
    std::ofstream(folder_ / "saved/tokenizer_config.json", std::ios::binary) << config;
    return Tokenizer::load(folder_ / "saved").encode("hello").front();
  };
  const std::int32_t spaced = with.encode("hello").front(), plain = without.encode("hello").front();
  for (const char* name : {"GPT2Tokenizer", "GPT2TokenizerFast", "CodeGenTokenizer", "CodeGenTokenizerFast",
                           "GPTNeoXTokenizer", "GPTNeoXTokenizerFast"}) {
    EXPECT_EQ(first_id(fmt::format(R"({{"tokenizer_class": "{}"}})", name)), plain) << name;
    EXPECT_EQ(first_id(fmt::format(R"({{"tokenizer_class": "{}", "add_prefix_space": true}})", name)), spaced) << name;
  }
  EXPECT_EQ(first_id(R"({"tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": false})"), spaced);
  std::filesystem::remove(folder_ / "saved/tokenizer_config.json");
  EXPECT_EQ(Tokenizer::load(folder_ / "saved").encode("hello").front(), spaced);
}

TEST_F(PrefixSpace, DoesNotKeepAnotherEndOfTextFromEndingDocuments) {
  write("added_tokens.json", R"({"<|pad|>": 263})");
  write("tokenizer_config.json", R"({"eos_token": "<|pad|>"})");
  const Tokenizer tokenizer = Tokenizer::load(folder_.path());
  EXPECT_EQ(tokenizer.end_of_text(), 263);
  tokenizer.save(folder_ / "saved");
  EXPECT_EQ(Tokenizer::load(folder_ / "saved").end_of_text(), 263);
}

TEST_F(PrefixSpace, AndMarksBeforeTheFilesAreReadOver) {
  const std::string hash = Tokenizer::load(folder_.path()).hash();
  for (const char* name : {"vocab.json", "merges.txt", "tokenizer_config.json"}) {
    write(name, "\xEF\xBB\xBF" + read_file(folder_ / name));
  }
  EXPECT_EQ(Tokenizer::load(folder_.path()).hash(), hash);
}

TEST(TokenizerSideFiles, SayThatAVocabularyWithoutTokensIsEmpty) {
  const TemporaryFolder folder;
  std::ofstream(folder / "vocab.json") << "{}";
  std::ofstream(folder / "merges.txt") << "#version: 0.2\n";
  EXPECT_THAT(message_of<UserError>([&] { Tokenizer::load(folder.path()); }), HasSubstr("has no tokens at all"));
}

TEST(SideFiles, LeaveWithTheTokenizerThatStoodInTheFolder) {
  const TemporaryFolder folder;
  const std::string_view text = "the rank waits for the rank";
  const Tokenizer tokenizer(train_bpe(std::array{text}, {.vocab_size = 260}));
  for (const char* const name : {"encoder.json", "vocab.bpe", "vocab.txt", "special_tokens_map.json"}) {
    std::ofstream(folder / name) << "of another";
  }
  std::ofstream(folder / "added_tokens.json") << R"({"rank": 0})";
  std::ofstream(folder / "notes.txt") << "mine";
  tokenizer.save(folder.path());
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.insert(entry.path().filename().string());
  }
  EXPECT_EQ(names, (std::set<std::string>{"merges.txt", "notes.txt", "tokenizer.json", "tokenizer_config.json",
                                          "vocab.json"}));
  EXPECT_EQ(Tokenizer::load(folder.path()).hash(), tokenizer.hash());
}

}  // namespace
}  // namespace teratron::testing
