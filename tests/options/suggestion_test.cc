// Nearest names of misspelled ones.
#include "options/suggestion.h"

#include <gtest/gtest.h>

namespace teratron::testing {
namespace {

TEST(Suggestion, DistanceIsSymmetricZeroOnlyForEqualWordsAndOneForOneSlip) {
  const std::string word = "hidden-size";
  EXPECT_EQ(edit_distance(word, word), 0U);
  for (std::size_t i = 0; i < word.size(); ++i) {
    std::string missing = word, wrong = word, doubled = word, swapped = word;
    missing.erase(i, 1);
    wrong[i] = '?';
    doubled.insert(i, 1, '?');
    for (const std::string& slip : {missing, wrong, doubled}) {
      EXPECT_EQ(edit_distance(word, slip), 1U) << slip;
      EXPECT_EQ(edit_distance(slip, word), 1U) << slip;
    }
    if (i + 1 < word.size() && word[i] != word[i + 1]) {
      std::swap(swapped[i], swapped[i + 1]);
      EXPECT_EQ(edit_distance(word, swapped), 1U) << swapped;
    }
  }
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Suggestion, TheNearestNameIsFoundAndNothingIsGuessedFromFarAway) {
  const std::vector<std::string> names = {"--lr", "--min-lr", "--lr-decay-style", "--hidden-size"};
  EXPECT_EQ(nearest_name("--hiden-size", names), "--hidden-size");
  EXPECT_EQ(nearest_name("--lr-decay", names), "--lr-decay-style");
  EXPECT_EQ(nearest_name("--tokenizer", names), "");
  EXPECT_EQ(nearest_name("--lr-of-adam", names), "--lr") << "a name with more after it";
  EXPECT_EQ(nearest_name("--min-lr-of-adam", names), "--min-lr");
}

// edit_distance() would take 5,000 billion steps, which ctest's limit of time ends.
TEST(Suggestion, ANameOfMegabytesIsComparedWithNone) {
  const std::vector<std::string> names(40000, "--hidden-size");
  EXPECT_EQ(nearest_name(std::string(std::size_t{10} << 20, 'x'), names), "");
}

}  // namespace
}  // namespace teratron::testing
