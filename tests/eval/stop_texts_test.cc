#include "eval/generation/stop_texts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace teratron::testing {
namespace {

// Where a text ends by definition: at the first place where a stop text ends, before the longest that ends there.
std::string cut_at_once(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

// Words of two letters have many beginnings in common. A "character" has two bytes, which are cut apart, too.
std::string random_word(std::mt19937& random, std::size_t least, std::size_t most) {
  std::string word;
  const auto count = std::uniform_int_distribution<std::size_t>(least, most)(random);
  for (std::size_t i = 0; i < count; ++i) word += std::vector<std::string>{"a", "b", "é", "è"}[random() % 4];
  return word;
}

TEST(StopTexts, EndATextWhereTheyDoByDefinitionHoweverItIsCutIntoPieces) {
  std::mt19937 random(1);
  int stopped = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<std::string> stops;
    for (std::size_t i = random() % 4; i-- > 0;) stops.push_back(random_word(random, 1, 5));
    const std::string text = random_word(random, 0, 30), expected = cut_at_once(text, stops);
    StopTexts matcher(stops);
    std::string made;
    for (std::size_t at = 0; at < text.size() && !matcher.stopped();) {
      const std::size_t count = 1 + random() % 6;
      made += matcher.push(text.substr(at, count));
      at += count;
      ASSERT_TRUE(expected.starts_with(made)) << "a part of a stop text was handed out: " << made << " of " << text;
    }
    EXPECT_EQ(matcher.stopped(), expected != text);
    stopped += matcher.stopped() ? 1 : 0;
    EXPECT_EQ(made + matcher.finish(), expected) << text;
  }
  EXPECT_GT(stopped, 500);  // most trials have a stop text, and many meet it
}

TEST(StopTexts, HoldBackNoMoreThanCouldBecomeOne) {
  StopTexts matcher({"abac"});
  EXPECT_EQ(matcher.push("xab"), "x");
  EXPECT_EQ(matcher.push("ab"), "ab");
  EXPECT_EQ(matcher.push("z"), "abz");
  EXPECT_EQ(matcher.push("ababa"), "ab");
  EXPECT_EQ(matcher.finish(), "aba");
}

TEST(StopTexts, ReturnNothingAfterOne) {
  StopTexts matcher({"."});
  EXPECT_EQ(matcher.push("one. two."), "one");
  EXPECT_EQ(matcher.push("three"), "");
  EXPECT_EQ(matcher.finish(), "");
}

}  // namespace
}  // namespace teratron::testing
