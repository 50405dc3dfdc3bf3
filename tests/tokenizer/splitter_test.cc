// The splitter against std::regex, which knows nothing of Unicode: each character of the text is replaced by one letter
// for its class before the regex sees it.
#include "tokenizer/bpe/splitter.h"

#include <gtest/gtest.h>

// GCC 12 takes a variable of <regex> for uninitialised when sanitizers are on.
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <regex>
#pragma GCC diagnostic pop

#include "tokenizer/tokenizer_fixture.h"

namespace teratron::testing {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    words.emplace_back(text.substr(0, first_word_length(text)));
    text.remove_prefix(words.back().size());
  }
  return words;
}

// A character and the regex' view of it: itself, or L, N, O(ther), W(hite space).
struct Sample {
  std::string bytes;
  char seen;
};
const std::vector<Sample> kSamples = {
    {"s", 's'},      {"t", 't'},          {"r", 'r'},      {"e", 'e'},
    {"v", 'v'},      {"m", 'm'},          {"l", 'l'},      {"d", 'd'},
    {"S", 'L'},      {"x", 'L'},          {"\u00E9", 'L'}, {"\u044F", 'L'},
    {"\u4E2D", 'L'}, {"\U00020000", 'L'}, {"7", 'N'},      {"\u00BD", 'N'},
    {"\u0663", 'N'}, {"\U0001D7D8", 'N'}, {"'", '\''},     {"'", '\''},
    {"'", '\''},     {"!", 'O'},          {"\u0301", 'O'}, {"\U0001F600", 'O'},
    {"\u200B", 'O'}, {"\u180E", 'O'},     {"\x01", 'O'},   {std::string(1, '\0'), 'O'},
    {"\x1F", 'O'},   {"\xFF", 'O'},       {"\x80", 'O'},   {"\xC0", 'O'},
    {" ", ' '},      {" ", ' '},          {" ", ' '},      {"\n", 'W'},
    {"\t", 'W'},     {"\r", 'W'},         {"\u0085", 'W'}, {"\u00A0", 'W'},
    {"\u2028", 'W'}, {"\u3000", 'W'},
};

TEST(Splitter, FindsTheWordsOfThePattern) {
  const std::regex pattern("'s|'t|'re|'ve|'m|'ll|'d| ?[a-zL]+| ?N+| ?[O']+|[ W]+(?![^ W])|[ W]+");
  RandomSequence random = random_sequence(1);
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text, seen;
    std::vector<std::size_t> begins;  // of each character, in bytes
    const std::uint64_t length = 1 + random.below(24);
    for (std::uint64_t i = 0; i < length; ++i) {
      const Sample& sample = kSamples[random.below(kSamples.size())];
      // Runs, since a uniform choice hardly makes any.
      for (std::uint64_t repeat = random.below(4) == 0 ? 1 + random.below(20) : 1; repeat > 0; --repeat) {
        begins.push_back(text.size());
        text += sample.bytes;
        seen += sample.seen;
      }
    }
    begins.push_back(text.size());
    std::vector<std::string> expected;
    for (auto match = std::sregex_iterator(seen.begin(), seen.end(), pattern); match != std::sregex_iterator();
         ++match) {
      const auto first = static_cast<std::size_t>(match->position());
      const std::size_t end = begins[first + static_cast<std::size_t>(match->length())];
      expected.push_back(text.substr(begins[first], end - begins[first]));
    }
    ASSERT_EQ(split(text), expected) << "classes: " << seen;
  }
}

TEST(Splitter, TakesABrokenCharacterForSymbols) {
  EXPECT_EQ(split("a\xE2\x82 b"), (std::vector<std::string>{"a", "\xE2\x82", " b"}));
  EXPECT_EQ(split(" \xED\xA0\x80z"), (std::vector<std::string>{" \xED\xA0\x80", "z"}));  // a surrogate
  EXPECT_EQ(split("x\xC1\xA1x"), (std::vector<std::string>{"x", "\xC1\xA1", "x"}));      // an overlong 'a'
}

TEST(Splitter, CutsWhereTheWordsStayTheSame) {
  RandomSequence random = random_sequence(2);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text;
    for (std::uint64_t i = random.below(60); i > 0; --i) text += kSamples[random.below(kSamples.size())].bytes;
    const std::size_t cut = next_safe_cut(text, random.below(text.size() + 1));
    std::vector<std::string> words = split(std::string_view(text).substr(0, cut));
    for (const std::string& word : split(std::string_view(text).substr(cut))) words.push_back(word);
    ASSERT_EQ(words, split(text)) << "cut at " << cut;
  }
}

TEST(Splitter, FindsCutsInOrdinaryText) {
  EXPECT_EQ(next_safe_cut("one two", 0), 3U);
  EXPECT_EQ(next_safe_cut("one two", 3), 3U);
  EXPECT_EQ(next_safe_cut("one  two", 4), 8U);  // white space is never cut
}

}  // namespace
}  // namespace teratron::testing
