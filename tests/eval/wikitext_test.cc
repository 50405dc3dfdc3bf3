#include "eval/wikitext.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "base/file.h"
#include "tokenizer/tokenizer.h"

namespace teratron {
namespace {

TEST(Wikitext, DetokenisingUndoesTheCorpusConventions) {
  EXPECT_EQ(
      detokenize_wikitext(" = = Gameplay = = \n He said , \" yes ! \" ( 1 @,@ 000 ) the boys ' 3 @.@ 5 @-@ inch 's \n"),
      "== Gameplay ==\nHe said, \"yes!\" (1,000) the boys' 3.5-inch's\n");
  EXPECT_EQ(detokenize_wikitext("( a \n b ) x ( c"), "(a\nb) x ( c");  // pairs may span lines; a lone opener stays
}

TEST(Wikitext, TestSetHasThePapersCounts) {
  const std::filesystem::path data = std::filesystem::path(TERATRON_SOURCE_DIR) / "../shared/data";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "needs " << data << " (WikiText103 and GPT-2's vocabulary)";
  const std::string text = read_file(data / "wikitext103/wiki.test.tokens");
  EXPECT_EQ(count_wikitext_words(text), 245566);
  EXPECT_EQ(Tokenizer::load(data / "gpt2-bpe").encode(detokenize_wikitext(text)).size(), 270329U + 1);
}

TEST(Wikitext, WindowsScoreEveryTargetExactlyOnceWithMostContext) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 500; ++trial) {
    const std::int64_t targets = random() % 300, length = 1 + random() % 40,
                       stride = 1 + random() % static_cast<unsigned>(length);
    std::vector<int> scored(static_cast<std::size_t>(targets));
    for (const ScoringWindow& window : scoring_windows(targets, length, stride)) {
      EXPECT_EQ(window.begin % stride, 0);
      EXPECT_LE(window.length, length);
      EXPECT_LT(window.first_scored, window.length);
      EXPECT_TRUE(window.begin == 0 ? window.first_scored == 0 : window.first_scored == length - stride);
      for (std::int64_t i = window.first_scored; i < window.length; ++i)
        ++scored[static_cast<std::size_t>(window.begin + i)];
    }
    EXPECT_EQ(std::count(scored.begin(), scored.end(), 1), targets);
  }
}

}  // namespace
}  // namespace teratron
