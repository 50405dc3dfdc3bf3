#include "eval/wikitext.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files/file.h"
#include "tokenizer/tokenizer.h"

namespace teratron::testing {
namespace {

TEST(Wikitext, DetokenisingUndoesTheCorpusConventions) {
  EXPECT_EQ(
      detokenize_wikitext(" = = Gameplay = = \n He said , \" yes ! \" ( 1 @,@ 000 ) the boys ' 3 @.@ 5 @-@ inch \n"),
      " == Gameplay ==\nHe said, \"yes!\" (1,000) the boys' 3.5-inch\n");
  EXPECT_EQ(detokenize_wikitext("( a \n b ) x ( c"), "(a\nb) x ( c");  // pairs may span lines; a lone opener stays
}

TEST(Wikitext, TestSetHasThePapersCounts) {
  const std::filesystem::path data = std::filesystem::path(TERATRON_SOURCE_DIR) / "../shared/data";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "needs " << data << " (WikiText103 and GPT-2's vocabulary)";
  const std::string text = read_file(data / "wikitext103/wiki.test.tokens");
  EXPECT_EQ(count_wikitext_words(text), 245566);
  EXPECT_EQ(Tokenizer::load(data / "gpt2-bpe").encode(detokenize_wikitext(text)).size(), 270329U + 1);
}

}  // namespace
}  // namespace teratron::testing
