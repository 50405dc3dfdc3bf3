#include "console/term_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "console/terminal_text.h"

namespace teratron::testing {
namespace {

TEST(TermList, ShortTermsStandBesideTheirExplanationsAndLongOnesAbove) {
  TermList list({.columns = 40});
  list.heading("Model:");
  list.term("--model NAME", "preset of layers, hidden size and heads");
  list.term("--model-type gpt2|bert|llama|mistral|qwen2|qwen3", "kind of model");
  list.heading("Data:");
  list.term("--split", "");
  EXPECT_EQ(list.text(),
            "Model:\n"
            "  --model NAME  preset of layers, hidden\n"
            "                size and heads\n"
            "  --model-type gpt2|bert|llama|mistral|\n"
            "  qwen2|qwen3\n"
            "                kind of model\n"
            "\nData:\n"
            "  --split\n");
}

TEST(TermList, RandomListsFitTheirColumnsAndLoseNoWord) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t columns = 60 + random() % 51;
    TermList list({.columns = columns});
    std::string words;
    for (int row = 0; row < 5; ++row) {
      std::string term = "--t", explanation;
      for (std::size_t i = random() % 12; i > 0; --i) term += std::string(random() % 9, 'v') + (i > 1 ? "|" : "");
      for (std::size_t i = 1 + random() % 30; i > 0; --i)
        explanation += std::string(1 + random() % 12, 'w') + (i > 1 ? " " : "");
      words += term + explanation;
      list.term(term, explanation);
    }
    std::string all = list.text(), line;
    std::istringstream lines(all);
    while (std::getline(lines, line)) EXPECT_LE(display_width(line), columns) << line;
    const auto bare = [](std::string text) {
      std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
      return text;
    };
    EXPECT_EQ(bare(all), bare(words));
  }
}

TEST(Fitted, LongLinesGoOnFurtherInAndShortOnesStay) {
  const std::string text = "one two three four five six\nseven\n  eight nine ten eleven twelve thirteen\n";
  EXPECT_EQ(fitted(text, 0), text) << "no terminal";
  EXPECT_EQ(fitted(text, 60), text);
  EXPECT_EQ(fitted(text, 26),
            "one two three four\n    five six\nseven\n  eight nine ten\n      eleven twelve\n      thirteen\n");
  EXPECT_EQ(fitted("one two three", 5), "one two three") << "nothing fits";
}

TEST(TermList, ColoursTakeNoColumns) {
  TermList list({.columns = 60, .has_colours = true});
  list.heading("A");
  list.term("b", "c");
  list.term("bb", "d");
  EXPECT_EQ(list.text(), "\x1b[1mA\x1b[0m\n  \x1b[36mb\x1b[0m   c\n  \x1b[36mbb\x1b[0m  d\n");
}

}  // namespace
}  // namespace teratron::testing
