// Against Hugging Face tokenizers themselves, on shared data (half a megabyte of each file; all of it with
// TERATRON_WHOLE_DATA=1, which takes minutes) and on random Unicode (other texts with TERATRON_SEED). Needs the
// environment of scripts/oracle-env; skips where it is not. What Hugging Face takes for special tokens we do where
// SpecialText::kToken asks for it; for the rest it reads a tokenizer from which they were removed, since to us they are
// plain text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/files/decompression.h"
#include "base/host/threads.h"
#include "oracle/python.h"
#include "tokenizer/word_piece_fixture.h"

namespace teratron::testing {
namespace {

struct OracleAnswer {
  std::uint32_t plain, decoded, special, called;  // the last two are 0 for lines of files
};

std::uint32_t crc32_of(std::span<const std::int32_t> values) {
  return crc32({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

std::uint32_t crc32_of(std::span<const TokenSpan> spans) {
  static_assert(sizeof(TokenSpan) == 3 * sizeof(std::int32_t));
  return crc32({reinterpret_cast<const char*>(spans.data()), spans.size_bytes()});
}

std::vector<std::string_view> texts_in(std::string_view file) {
  std::vector<std::string_view> texts;
  while (!file.empty()) {
    std::uint32_t size = 0;
    std::memcpy(&size, file.data(), sizeof size);
    texts.push_back(file.substr(sizeof size, size));
    file.remove_prefix(sizeof size + size);
  }
  return texts;
}

class WordPieceOracle : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_oracle(); !why.empty()) GTEST_SKIP() << why;
  }

  void ask(const std::vector<std::string>& arguments) {
    ASSERT_EQ(run_oracle("word_piece_differential.py", arguments, folder_ / "log"), 0) << read_file(folder_ / "log");
  }

  // Saves the tokenizer, lets Hugging Face read it and encode, and compares.
  void compare(const WordPieceModel& model, int seed, const std::vector<std::string>& files) {
    const Tokenizer tokenizer(model);
    tokenizer.save(folder_ / "ours");
    std::vector<std::string> arguments = {"answers", (folder_ / "ours").string(), std::to_string(seed)};
    arguments.insert(arguments.end(), files.begin(), files.end());
    ASSERT_NO_FATAL_FAILURE(ask(arguments));
    EXPECT_EQ(Tokenizer::load(folder_ / "ours" / "saved").hash(), tokenizer.hash()) << "as transformers saved it";

    const std::string asked = read_file(folder_ / "ours" / "texts"), answered = read_file(folder_ / "ours" / "answers");
    const std::vector<std::string_view> texts = texts_in(asked);
    std::vector<OracleAnswer> answers(answered.size() / sizeof(OracleAnswer));
    std::memcpy(answers.data(), answered.data(), answered.size());
    ASSERT_EQ(answers.size(), texts.size());
    std::size_t tokens = 0, unknown = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::vector<TokenSpan> spans = tokenizer.encode_with_offsets(texts[i]);
      std::vector<std::int32_t> ids;
      for (const TokenSpan& span : spans) {
        ids.push_back(span.id);
        unknown += span.id == model.unknown ? 1 : 0;
      }
      tokens += ids.size();
      ASSERT_EQ(crc32_of(spans), answers[i].plain) << "text " << i << ": " << texts[i].substr(0, 1000);
      ASSERT_EQ(crc32(tokenizer.decode(ids)), answers[i].decoded) << "text " << i << ": " << texts[i].substr(0, 1000);
      ASSERT_EQ(tokenizer.encode(texts[i]), ids) << "text " << i << ": " << texts[i].substr(0, 1000);
      if (answers[i].special == 0 && answers[i].called == 0) continue;
      ASSERT_EQ(crc32_of(tokenizer.encode_with_offsets(texts[i], SpecialText::kToken)), answers[i].special)
          << "text " << i << ": " << texts[i].substr(0, 1000);
      std::vector<std::int32_t> called = {model.classify};
      tokenizer.encode_to(texts[i], called, SpecialText::kToken);
      called.push_back(model.separate);
      ASSERT_EQ(crc32_of(called), answers[i].called) << "text " << i << ": " << texts[i].substr(0, 1000);
    }
    EXPECT_GT(texts.size(), 2000U);
    RecordProperty("texts", std::to_string(texts.size()));
    RecordProperty("tokens", std::to_string(tokens));
    fmt::print("identical: {} texts, {} tokens, {} of them unknown\n", texts.size(), tokens, unknown);
  }

  TemporaryFolder folder_;
};

class WordPieceOracleWays : public WordPieceOracle, public ::testing::WithParamInterface<int> {};

TEST_P(WordPieceOracleWays, RandomUnicodeHasTheTokensAndPlacesOfHuggingFace) {
  const int way = GetParam();
  const char* seed = std::getenv("TERATRON_SEED");
  const int first = seed == nullptr ? 1 : std::atoi(seed);
  ASSERT_NO_FATAL_FAILURE(ask({"vocabulary", folder_.path().string(), std::to_string(first + way)}));
  WordPieceModel model = Tokenizer::load(folder_ / "vocab.txt").word_piece();
  model.lower_case = (way & 1) != 0;
  model.strip_accents = (way & 2) != 0;
  model.split_chinese = (way & 4) != 0;
  compare(model, first + way, {});
}

INSTANTIATE_TEST_SUITE_P(Each, WordPieceOracleWays, ::testing::Range(0, 8));

class WordPieceOracleData : public WordPieceOracle, public ::testing::WithParamInterface<bool> {};

TEST_P(WordPieceOracleData, AllSharedDataHasTheTokensAndPlacesOfHuggingFace) {
  if (!std::filesystem::exists(shared_data() / "bert-vocab")) GTEST_SKIP() << "no data at " << shared_data();
  WordPieceModel model = Tokenizer::load(shared_data() / "bert-vocab").word_piece();
  model.lower_case = model.strip_accents = GetParam();
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(shared_data())) {
    if (!entry.is_regular_file()) continue;
    std::string text = read_decompressed(entry.path());
    if (std::getenv("TERATRON_WHOLE_DATA") == nullptr)
      text.resize(text.find_last_of(" \n", std::min<std::size_t>(text.size(), 1 << 19)) + 1);
    files.push_back((folder_ / std::to_string(files.size())).string());
    write_file_atomically(files.back(), text);
  }
  EXPECT_GT(files.size(), 10U);
  compare(model, 100, files);
}

INSTANTIATE_TEST_SUITE_P(UncasedAndCased, WordPieceOracleData, ::testing::Bool());

}  // namespace
}  // namespace teratron::testing
