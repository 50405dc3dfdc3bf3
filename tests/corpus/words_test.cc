// Words and n-grams.
#include "corpus/words.h"

#include <gmock/gmock.h>

#include <gtest/gtest.h>
#include <algorithm>

#include "base/philox.h"
#include "base/utf8.h"

namespace teratron::testing {
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

// By Unicode's grapheme clusters and its joining signs, by hand.
TEST(Words, AreClustersOfALetterAndItsMarksInScriptsWithoutSpaces) {
  const auto words = [](std::initializer_list<const char*> all) {
    return std::vector<std::string>(all.begin(), all.end());
  };
  EXPECT_EQ(spelled("น้ำใจ"), words({"น้ำ", "ใ", "จ"}));                  // Thai: the vowel AM belongs to its letter
  EXPECT_EQ(spelled("ที่นี่abcก๑๒"), words({"ที่", "นี่", "abc", "ก", "๑๒"}));  // letters and numbers of others are words
  EXPECT_EQ(spelled("ພາສາລາວ"), words({"ພ", "າ", "ສ", "າ", "ລ", "າ", "ວ"}));
  EXPECT_EQ(spelled("ភាសាខ្មែរ"), words({"ភា", "សា", "ខ្មែ", "រ"}));  // Khmer: coeng joins
  EXPECT_EQ(spelled("မြန်မာဘာသာ"), words({"မြ", "န်", "မာ", "ဘာ", "သာ"}));
  EXPECT_EQ(spelled("သတ္တဝါ"), words({"သ", "တ္တ", "ဝါ"}));  // Burmese: stacked letters
  EXPECT_EQ(spelled("ꦧꦱꦗꦮ"), words({"ꦧ", "ꦱ", "ꦗ", "ꦮ"}));
  EXPECT_EQ(spelled("བོད་སྐད"), words({"བོད", "སྐད"}));  // Tibetan: the tsheg parts syllables
  EXPECT_EQ(spelled("ﾊﾛｰꀊꉬ"), words({"ﾊ", "ﾛ", "ｰ", "ꀊ", "ꉬ"}));
  EXPECT_EQ(hashes("ภาษา\u200Bไทย"), hashes("ภาษาไทย"));  // a space of no width is none
}

TEST(Words, StayAsTheyWereInScriptsWithSpaces) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"हिन्दी भाषा", {"हिन्दी", "भाषा"}},   {"বাংলা ভাষা", {"বাংলা", "ভাষা"}},       {"தமிழ் மொழி", {"தமிழ்", "மொழி"}},
      {"한국어 문장", {"한국어", "문장"}}, {"اللغة العربية", {"اللغة", "العربية"}}, {"ქართული ენა", {"ქართული", "ენა"}},
      {"አማርኛ ቋንቋ", {"አማርኛ", "ቋንቋ"}},       {"tiếng Việt", {"tiếng", "Việt"}}};
  for (const auto& [text, words] : cases) EXPECT_EQ(spelled(text), words);
}

TEST(Shingles, AreCharactersInATextWithoutWords) {
  const auto shingles = [](std::string_view text) { return shingles_of(text, 5); };
  EXPECT_EQ(shingles("!!!").size(), 1U);
  EXPECT_EQ(shingles("!!!"), shingles(" !! !\n"));
  EXPECT_EQ(shingles(""), shingles(" \u00A0\u3000\n"));
  const std::vector<std::string> different = {"", "!!!", "!!", "🙂", "🙂🙂", "\u0301", "a", "1"};
  for (std::size_t i = 0; i < different.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(shingles(different[i]), shingles(different[j])) << i << " " << j;
  }
  EXPECT_EQ(shingles("a b !!!"), ngrams_of(words_of("a b"), 5));
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

// Unicode can write a word in several ways: composed and not, of half and full width, with or without case, and with
// characters that are not seen.
TEST(Words, AreTheSameHoweverTheyAreWritten) {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"caf\u00E9 na\u00EFve", "cafe\u0301 nai\u0308ve"},
      {"\u0412\u043E\u0439\u043D\u0430", "\u0412\u043E\u0438\u0306\u043D\u0430"},
      {"Ti\u1EBFng Vi\u1EC7t", "Tie\u0302\u0301ng Vie\u0323\u0302t"},
      {"\uD55C\uAD6D", "\u1112\u1161\u11AB\u1100\u116E\u11A8"},
      {"\u304C\u30AC \u3071", "\u304B\u3099\u30AB\u3099 \u306F\u309A"},
      {"\u30AC\u30AB\u30D1\u30FC", "\uFF76\uFF9E\uFF76\uFF8A\uFF9F\uFF70"},
      {"abc 12", "\uFF41\uFF22\uFF43 \uFF11\uFF12"},
      {"\u0E19\u0E33", "\u0E19\u0E4D\u0E32"},
      {"\u0E99\u0EB3", "\u0E99\u0ECD\u0EB2"},
      {"hyphen", "hy\u00ADphen"},
      {"hyphen", "hy\u200Bphen\uFEFF"},
      {"\u039B\u038C\u0393\u039F\u03A3", "\u03BB\u03CC\u03B3\u03BF\u03C2"},
      {"STRASSE Stra\u00DFe", "stra\u00DFe strasse"},
      {"\u1E9E", "ss"},
      {"fin", "\uFB01n"},
      {"\u0130stanbul", "I\u0307stanbul"},
      {"\u00C5ngstrom", "\u212Bngstrom"}};
  for (const auto& [one, other] : pairs) {
    EXPECT_EQ(hashes(one), hashes(other)) << one << " " << other;
    EXPECT_FALSE(hashes(one).empty());
  }
  EXPECT_NE(hashes("caf\u00E9"), hashes("cafe"));
  EXPECT_NE(hashes("\u304C"), hashes("\u304B"));
  EXPECT_THAT(spelled("\u304B\u3099\u4E16a"), ::testing::ElementsAre("\u304B\u3099", "\u4E16", "a"));
}

}  // namespace
}  // namespace teratron::testing
