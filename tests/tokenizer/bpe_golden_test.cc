// Against tiktoken and Hugging Face tokenizers, whose answers tests/golden/make_bpe_golden.py wrote down.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>

#include "base/host/threads.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/tokenizer_fixture.h"
#include "tokenizer/unicode.h"

namespace teratron::testing {
namespace {

nlohmann::json golden(const std::string& name) {
  return nlohmann::json::parse(read_file(std::filesystem::path(TERATRON_SOURCE_DIR) / "tests/golden/bpe" / name));
}

class Gpt2Vocabulary : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder_)) GTEST_SKIP() << "GPT-2's vocabulary is not at " << folder_;
  }
  std::filesystem::path folder_ = shared_data() / "gpt2-bpe";
};

TEST_F(Gpt2Vocabulary, HardTextsHaveTheIdsOfTheOracles) {
  const Tokenizer tokenizer = Tokenizer::load(folder_);
  const nlohmann::json texts = golden("texts.json");
  ASSERT_EQ(texts.size(), 400U);
  for (const auto& expected : texts) {
    const auto text = expected["text"].get<std::string>();
    EXPECT_EQ(tokenizer.encode(text), expected["ids"].get<std::vector<std::int32_t>>()) << "text: " << expected["text"];
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST_F(Gpt2Vocabulary, WholeCorporaHaveTheIdsOfTheOracles) {
  const Tokenizer tokenizer = Tokenizer::load(folder_);
  const nlohmann::json corpora = golden("corpora.json");
  for (const auto& [name, expected] : corpora.items()) {
    const std::string text = read_file(shared_data() / name);
    ASSERT_EQ(text.size(), expected["bytes"].get<std::size_t>()) << name;
    const std::vector<std::int32_t> ids = tokenizer.encode(text);
    EXPECT_EQ(ids.size(), expected["tokens"].get<std::size_t>()) << name;
    EXPECT_EQ(fnv1a(std::as_bytes(std::span(ids))), expected["fnv1a"].get<std::string>()) << name;
    EXPECT_EQ(tokenizer.decode(ids), text) << name;
    EXPECT_EQ(tokenizer.encode_parallel(text), ids) << name;
  }
}

TEST_F(Gpt2Vocabulary, EveryTokenThatTheSplitterLeavesWholeEncodesToItself) {
  const Tokenizer tokenizer = Tokenizer::load(folder_);
  ASSERT_EQ(tokenizer.vocab_size(), 50257);
  ASSERT_EQ(tokenizer.end_of_text(), 50256);
  std::int64_t whole = 0;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::vector<std::int32_t> ids = tokenizer.encode(tokenizer.bytes_of(id));
    if (ids.size() != 1) continue;
    EXPECT_EQ(ids[0], id);
    ++whole;
  }
  EXPECT_GT(whole, 50000);  // all but runs of spaces before a word and a few torn characters
}

TEST(UnicodeClasses, AreThoseOfTheOraclesForEveryCodePoint) {
  std::vector<std::byte> classes;
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (code < 0xD800 || code > 0xDFFF) classes.push_back(static_cast<std::byte>(class_of(code)));
  }
  const auto expected = golden("characters.json");
  EXPECT_EQ(classes.size(), expected["code_points"].get<std::size_t>());
  EXPECT_EQ(fnv1a(classes), expected["fnv1a"].get<std::string>());
}

TEST(BpeTraining, OnShakespeareMakesTheMergesOfHuggingFace) {
  const std::filesystem::path path = shared_data() / "tinyshakespeare/input.txt";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "Tiny Shakespeare is not at " << path;
  const std::string text = read_file(path);
  const std::string_view view = text;
  const BpeModel model = train_bpe({&view, 1}, {.vocab_size = 1001});
  std::vector<std::string> merges;
  for (const BpeMerge& merge : model.merges) {
    merges.push_back(to_alphabet(model.tokens[static_cast<std::size_t>(merge.left)]) + " " +
                     to_alphabet(model.tokens[static_cast<std::size_t>(merge.right)]));
  }
  EXPECT_EQ(merges, golden("training.json").get<std::vector<std::string>>());
}

}  // namespace
}  // namespace teratron::testing
