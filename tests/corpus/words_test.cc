// Words and n-grams.
#include "corpus/words.h"

#include <gmock/gmock.h>

#include <gtest/gtest.h>
#include <algorithm>

#include "base/philox.h"
#include "tokenizer/utf8.h"

namespace teratron {
namespace {

std::vector<std::string> spelled(std::string_view text) {
  std::vector<std::string> words;
  for (const Word& word : words_of(text)) words.emplace_back(text.substr(word.begin, word.end - word.begin));
  return words;
}

std::vector<std::uint64_t> hashes(std::string_view text) {
  std::vector<std::uint64_t> all;
  for (const Word& word : words_of(text)) all.push_back(word.hash);
  return all;
}

TEST(Words, AreRunsOfLettersAndNumbers) {
  EXPECT_THAT(spelled("It's 3.14, na\u00efve-\u00c9t\u00e9!  x\xFFy_z"),
              ::testing::ElementsAre("It", "s", "3", "14", "na\u00efve", "\u00c9t\u00e9", "x", "y", "z"));
  EXPECT_THAT(spelled("\u4e16\u754c abc\u4e16\u3053d"),
              ::testing::ElementsAre("\u4e16", "\u754c", "abc", "\u4e16", "\u3053", "d"));
  EXPECT_THAT(spelled("\u0928\u092e\u0938\u094d\u0924\u0947 x"),
              ::testing::ElementsAre("\u0928\u092e\u0938\u094d\u0924\u0947", "x"));
  EXPECT_THAT(spelled(" .,!\n"), ::testing::IsEmpty());
}

TEST(Words, DoNotDependOnCaseOrPunctuation) {
  EXPECT_EQ(hashes("The \u00c9T\u00c9, of '42"), hashes("the... \u00e9t\u00e9 OF 42"));
  EXPECT_NE(hashes("the ete"), hashes("the \u00e9t\u00e9"));
}

TEST(Ngrams, AreEqualWhereTheirWordsAre) {
  RandomSequence random(RandomStream{.seed = 4});
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::string> words(random.below(12));
    std::string text;
    for (std::string& word : words) {
      word = std::string(1 + random.below(2), static_cast<char>('a' + random.below(2)));
      text += word + " ";
    }
    const auto count = static_cast<std::int64_t>(1 + random.below(4));
    const std::vector<std::uint64_t> ngrams = ngrams_of(words_of(text), count);
    const auto length = static_cast<std::size_t>(std::min<std::int64_t>(count, std::ssize(words)));
    ASSERT_EQ(ngrams.size(), words.empty() ? 0 : words.size() - length + 1);
    for (std::size_t i = 0; i < ngrams.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const bool same = std::equal(words.begin() + static_cast<std::ptrdiff_t>(i),
                                     words.begin() + static_cast<std::ptrdiff_t>(i + length),
                                     words.begin() + static_cast<std::ptrdiff_t>(j));
        EXPECT_EQ(ngrams[i] == ngrams[j], same) << text;
      }
    }
  }
  EXPECT_NE(ngrams_of(words_of("a b"), 5), ngrams_of(words_of("b a"), 5));
}

}  // namespace
}  // namespace teratron
