// Training against its definition: count all pairs of all words again before every merge.
#include "tokenizer/bpe/bpe_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/message_of.h"
#include "base/philox.h"
#include "tokenizer/bpe/splitter.h"
#include "tokenizer/tokenizer_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

std::vector<BpeMerge> train_by_definition(std::span<const std::string_view> texts, const BpeModel& bytes,
                                          std::size_t merges, std::int64_t minimum_count) {
  std::vector<std::vector<std::int32_t>> words;
  for (std::string_view text : texts) {
    while (!text.empty()) {
      const std::size_t length = first_word_length(text);
      std::vector<std::int32_t>& word = words.emplace_back();
      for (const char byte : text.substr(0, length)) {
        const auto found = std::find(bytes.tokens.begin(), bytes.tokens.begin() + 256, std::string(1, byte));
        word.push_back(static_cast<std::int32_t>(found - bytes.tokens.begin()));
      }
      text.remove_prefix(length);
    }
  }
  std::vector<BpeMerge> made;
  while (made.size() < merges) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> counts;
    for (const auto& word : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    }
    const auto best = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
    if (best == counts.end() || best->second < minimum_count) break;
    const auto [left, right] = best->first;  // max_element gives the first of equals: the smallest pair
    const auto merged = static_cast<std::int32_t>(256 + made.size());
    made.push_back({left, right, merged});
    for (auto& word : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) {
        if (word[i] != left || word[i + 1] != right) continue;
        word[i] = merged;
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }
  return made;
}

TEST(BpeTraining, MakesTheMergesOfTheDefinition) {
  RandomSequence random = random_sequence(8);
  for (int trial = 0; trial < 40; ++trial) {
    // Few different letters: many ties and many overlaps such as "aaa".
    const std::string_view alphabet = trial % 3 == 0 ? "aab  " : trial % 3 == 1 ? "abcdef'. \n" : "";
    std::vector<std::string> texts;
    for (int i = 0; i < 3; ++i) texts.push_back(random_bytes(random, 300, alphabet));
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    const std::int64_t minimum_count = 1 + trial % 2;
    const BpeModel model = train_bpe(views, {.vocab_size = 320, .minimum_count = minimum_count});
    validate(model, "trained");
    ASSERT_EQ(model.merges, train_by_definition(views, model, 320 - 257, minimum_count)) << "trial " << trial;
  }
}

TEST(BpeTraining, GivesTheEndOfTextTheLastId) {
  const Tokenizer tokenizer = small_tokenizer(280);
  EXPECT_EQ(tokenizer.vocab_size(), 280);
  EXPECT_EQ(tokenizer.end_of_text(), 279);
  EXPECT_EQ(tokenizer.bytes_of(0), "!");  // GPT-2's order of bytes
  EXPECT_EQ(tokenizer.bytes_of(220), " ");
}

TEST(BpeTraining, EndsEarlyWhereNoPairIsFrequent) {
  const std::string_view text = "ab ab cd";
  const BpeModel model = train_bpe({&text, 1}, {.vocab_size = 5000});
  EXPECT_EQ(model.merges.size(), 1U);  // "ab"; " ab" and "cd" occur once
  EXPECT_EQ(model.tokens.size(), 258U);
}

TEST(BpeTraining, CountsNoPairAcrossTexts) {
  const std::vector<std::string_view> texts = {"a", "b", "a", "b"};
  EXPECT_TRUE(train_bpe(texts, {}).merges.empty());
}

std::string error_of(std::string_view text, const BpeTrainingOptions& options) {
  return message_of<UserError>([&] { train_bpe({&text, 1}, options); });
}

TEST(BpeTraining, RefusesWhatCannotWork) {
  EXPECT_THAT(error_of("", {}), HasSubstr("no text to train a tokenizer on"));
  EXPECT_THAT(error_of("text", {.vocab_size = 256}), HasSubstr("256 tokens is too small: 257 is the least"));
  EXPECT_THAT(error_of("text", {.vocab_size = -1}), HasSubstr("too small"));
  EXPECT_THAT(error_of("text", {.special = {"<a>", "<a>"}}), HasSubstr("'<a>' is listed twice"));
  for (const char* special : {"", "word", "<<>>", "<a b>", "<\xC3\xA9>", "<\n>"}) {
    EXPECT_THAT(error_of("text", {.special = {special}}), HasSubstr("cannot be distinguished from text"));
  }
}

TEST(BpeTrainer, ReportsHowFarItIs) {
  RandomSequence random(RandomStream{.seed = 12});
  std::vector<std::string> texts(3);
  for (std::string& text : texts) {
    while (text.size() < (std::size_t{3} << 19))
      text += " " + std::string(1 + random.below(4), static_cast<char>('a' + random.below(6)));
  }
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  std::size_t bytes = 0;
  std::int64_t tokens = 0, calls = 0;
  const auto check = [&](const BpeTrainingProgress& progress) {
    ++calls;
    EXPECT_GE(progress.bytes_counted, bytes);
    EXPECT_GE(progress.tokens, tokens);
    EXPECT_EQ(progress.bytes, texts[0].size() + texts[1].size() + texts[2].size());
    EXPECT_TRUE(progress.tokens == 0 || progress.bytes_counted == progress.bytes);
    bytes = progress.bytes_counted;
    tokens = progress.tokens;
  };
  const BpeModel model = train_bpe(views, {.vocab_size = 270, .progress = check});
  EXPECT_EQ(tokens, 269);    // all but the special one
  EXPECT_EQ(calls, 4 + 13);  // one for each MB of 4.5, one for each pair
  EXPECT_EQ(model.merges.size(), 13U);
}

}  // namespace
}  // namespace teratron::testing
