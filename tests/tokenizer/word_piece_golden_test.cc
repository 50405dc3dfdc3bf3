// Against Hugging Face tokenizers, whose answers tests/golden/make_word_piece_golden.py wrote down.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>

#include "base/utf8.h"
#include "tokenizer/word_piece/bert_characters.h"
#include "tokenizer/word_piece/bert_normalizer.h"
#include "tokenizer/word_piece_fixture.h"

namespace teratron::testing {
namespace {

nlohmann::json word_piece_golden(const std::string& name) {
  return nlohmann::json::parse(
      read_file(std::filesystem::path(TERATRON_SOURCE_DIR) / "tests/golden/word_piece" / name));
}

// The ways to normalize as the golden files name them: lower case, strip accents, split Chinese.
WordPieceModel in_way(WordPieceModel model, std::string_view way) {
  model.lower_case = way[0] == '1';
  model.strip_accents = way[1] == '1';
  model.split_chinese = way[2] == '1';
  return model;
}

std::vector<std::int32_t> ids_of(std::span<const TokenSpan> spans) {
  std::vector<std::int32_t> ids;
  for (const TokenSpan& span : spans) ids.push_back(span.id);
  return ids;
}

TEST(WordPieceGolden, HardTextsHaveTheTokensPlacesAndTextOfHuggingFace) {
  const Tokenizer read =
      Tokenizer::load(std::filesystem::path(TERATRON_SOURCE_DIR) / "tests/golden/word_piece/vocab.txt");
  const nlohmann::json texts = word_piece_golden("texts.json");
  ASSERT_EQ(texts.size(), 150U);
  std::size_t known = 0, tokens = 0;
  for (const char* way : {"111", "001", "100"}) {
    const Tokenizer tokenizer(in_way(read.word_piece(), way));
    for (const auto& expected : texts) {
      const auto text = expected["text"].get<std::string>();
      const auto& answer = expected["ways"][way];
      const std::vector<TokenSpan> spans = tokenizer.encode_with_offsets(text);
      std::vector<std::int64_t> flat;
      for (const TokenSpan& span : spans) flat.insert(flat.end(), {span.id, span.begin, span.end});
      EXPECT_EQ(flat, answer["spans"].get<std::vector<std::int64_t>>()) << way << ", text: " << expected["text"];
      EXPECT_EQ(tokenizer.encode(text), ids_of(spans)) << way << ", text: " << expected["text"];
      EXPECT_EQ(tokenizer.decode(ids_of(spans)), answer["decoded"].get<std::string>())
          << way << ": " << expected["text"];
      for (const TokenSpan& span : spans) known += span.id != read.word_piece().unknown ? 1 : 0;
      tokens += spans.size();
    }
  }
  EXPECT_GT(known, tokens * 2 / 3);  // [UNK] would hide what words are made of
}

// The words of a normalized text, each with a line end after it.
void append_words(std::span<const NormalizedCharacter> characters, std::string& out) {
  const auto end_word = [&] {
    if (!out.empty() && out.back() != '\n') out += '\n';
  };
  for (const NormalizedCharacter& character : characters) {
    const bool is_punctuation = bert::is_punctuation(character.code);
    if (is_punctuation || character.code == ' ') end_word();
    if (character.code != ' ') append_utf8(character.code, out);
    if (is_punctuation) end_word();
  }
  end_word();
}

TEST(WordPieceGolden, EveryCodePointIsNormalizedAsByHuggingFace) {
  const nlohmann::json golden = word_piece_golden("characters.json");
  for (const char* way : {"111", "001"}) {
    BertNormalizer normalizer(in_way({}, way));
    const auto expected = golden[way].get<std::vector<std::uint32_t>>();
    ASSERT_EQ(expected.size(), 0x110000U / 1024);
    for (std::size_t block = 0; block < expected.size(); ++block) {
      std::string words;
      for (auto code = static_cast<char32_t>(block * 1024); code < (block + 1) * 1024; ++code) {
        if (code >= 0xD800 && code < 0xE000) continue;
        std::string text = "a";
        append_utf8(code, text);
        for (const std::string_view before : {"b \u302E", "\U0001D16D"}) {
          text += before;
          append_utf8(code, text);
        }
        append_words(normalizer.normalize(text), words);
      }
      EXPECT_EQ(crc32(words), expected[block])
          << way << fmt::format(": U+{:04X} to U+{:04X}", block * 1024, block * 1024 + 1023);
    }
  }
}

class BertVocabulary : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder_)) GTEST_SKIP() << "BERT's vocabulary is not at " << folder_;
  }
  std::filesystem::path folder_ = shared_data() / "bert-vocab";
};

TEST_F(BertVocabulary, IsUncasedWithGooglesIds) {
  const Tokenizer tokenizer = Tokenizer::load(folder_);
  ASSERT_EQ(tokenizer.kind(), TokenizerKind::kWordPiece);
  const WordPieceModel& model = tokenizer.word_piece();
  EXPECT_TRUE(model.lower_case && model.strip_accents && model.split_chinese);
  EXPECT_EQ(tokenizer.vocab_size(), 30522);
  EXPECT_EQ((std::vector{model.pad, model.unknown, model.classify, model.separate, model.mask}),
            (std::vector<std::int32_t>{0, 100, 101, 102, 103}));
}

TEST_F(BertVocabulary, WholeCorporaHaveTheIdsOfHuggingFace) {
  const Tokenizer tokenizer = Tokenizer::load(folder_);
  const nlohmann::json corpora = word_piece_golden("corpora.json");
  for (const auto& [name, expected] : corpora.items()) {
    const std::string text = read_file(shared_data() / name);
    ASSERT_EQ(text.size(), expected["bytes"].get<std::size_t>()) << name;
    const std::vector<std::int32_t> ids = tokenizer.encode(text);
    EXPECT_EQ(ids.size(), expected["tokens"].get<std::size_t>()) << name;
    EXPECT_EQ(fnv1a(std::as_bytes(std::span(ids))), expected["fnv1a"].get<std::string>()) << name;
    EXPECT_EQ(tokenizer.encode_parallel(text), ids) << name;
    EXPECT_EQ(ids_of(tokenizer.encode_with_offsets(text)), ids) << name;
  }
}

TEST_F(BertVocabulary, EveryTokenThatIsAWordEncodesToItself) {
  const Tokenizer tokenizer = Tokenizer::load(folder_);
  const WordPieceModel& model = tokenizer.word_piece();
  std::int64_t whole = 0;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::vector<std::int32_t> ids = tokenizer.encode(model.tokens[static_cast<std::size_t>(id)]);
    if (ids.size() == 1 && ids[0] != model.unknown) {
      EXPECT_EQ(ids[0], id);
      ++whole;
    }
  }
  EXPECT_GT(whole, 23000);  // all but the parts of words and the unused ones
}

}  // namespace
}  // namespace teratron::testing
