// SQuAD's windows and answers by themselves: properties over random sizes, and every span tried.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/philox.h"
#include "tasks/squad/answers.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;

TEST(SquadWindows, CoverTheParagraphAndShareAsManyTokensAsAsked) {
  EXPECT_THAT(squad::windows_of(9, 4, 1), ElementsAre(squad::Window{0, 4}, squad::Window{3, 4}, squad::Window{6, 3}));
  EXPECT_THAT(squad::windows_of(7, 4, 1), ElementsAre(squad::Window{0, 4}, squad::Window{3, 4}));
  EXPECT_THAT(squad::windows_of(4, 4, 3), ElementsAre(squad::Window{0, 4}));
  EXPECT_THAT(squad::windows_of(0, 4, 3), ElementsAre(squad::Window{0, 0}));
  RandomSequence random({.seed = 1});
  for (int trial = 0; trial < 3000; ++trial) {
    const auto tokens = static_cast<std::int64_t>(random.below(90));
    const auto room = 1 + static_cast<std::int64_t>(random.below(40));
    const auto shared = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(room)));
    const std::vector<squad::Window> windows = squad::windows_of(tokens, room, shared);
    EXPECT_EQ(windows.front().first, 0);
    EXPECT_EQ(windows.back().first + windows.back().count, tokens);
    for (std::size_t i = 0; i + 1 < windows.size(); ++i) {
      EXPECT_EQ(windows[i].count, room);
      EXPECT_EQ(windows[i + 1].first, windows[i].first + room - shared);
      EXPECT_GT(windows[i + 1].count, shared) << "a window without a token of its own";
    }
    EXPECT_LE(windows.back().count, room);
    // A span as long as the shared part and one more token is whole in some window.
    for (std::int64_t first = 0; first + shared < tokens; ++first) {
      EXPECT_TRUE(std::ranges::any_of(windows,
                                      [&](const squad::Window& window) {
                                        return window.first <= first && first + shared < window.first + window.count;
                                      }))
          << tokens << " tokens, room " << room << ", shared " << shared << ", from " << first;
    }
  }
}

TEST(SquadWindows, AnAnswerIsWhereItsStartSaysElseWhereTheTextFirstHasIt) {
  const std::string text = "\xC3\xA9 red, \xE4\xB8\xAD red red";  // e with an accent, an ideograph
  EXPECT_EQ(squad::begin_of_answer(text, {.text = "red", .start = {}}), 3U);
  EXPECT_EQ(squad::begin_of_answer(text, {.text = "red", .start = 2}), 3U);
  EXPECT_EQ(squad::begin_of_answer(text, {.text = "red", .start = 9}), 12U);
  EXPECT_EQ(squad::begin_of_answer(text, {.text = "red", .start = 13}), 16U);
  EXPECT_EQ(squad::begin_of_answer(text, {.text = "red", .start = 14}), 3U);
  EXPECT_EQ(squad::begin_of_answer(text, {.text = "red", .start = 1000}), 3U);
  EXPECT_EQ(squad::begin_of_answer(text, {.text = "\xE4\xB8\xAD", .start = 7}), 8U);
}

// Tokens of one to three bytes at random distances, of which some come from the same bytes.
std::vector<TokenSpan> random_tokens(RandomSequence& random, std::uint64_t count) {
  std::vector<TokenSpan> tokens;
  std::uint32_t at = 0;
  while (tokens.size() < count) {
    const auto begin = at + static_cast<std::uint32_t>(random.below(3));
    at = begin + 1 + static_cast<std::uint32_t>(random.below(3));
    for (std::uint64_t same = 1 + random.below(5) / 4; same > 0; --same) tokens.push_back({.begin = begin, .end = at});
  }
  return tokens;
}

TEST(SquadWindows, TheTokensOfBytesAreAllThatHaveOneOfThem) {
  RandomSequence random({.seed = 2});
  for (int trial = 0; trial < 3000; ++trial) {
    const std::vector<TokenSpan> tokens = random_tokens(random, random.below(12));
    const std::size_t begin = random.below(30), end = begin + random.below(8);
    std::vector<std::int64_t> right;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (std::max<std::size_t>(tokens[i].begin, begin) < std::min<std::size_t>(tokens[i].end, end)) {
        right.push_back(static_cast<std::int64_t>(i));
      }
    }
    const auto found = squad::tokens_of_bytes(tokens, begin, end);
    if (begin == end) continue;  // of no byte
    ASSERT_EQ(found.has_value(), !right.empty());
    if (right.empty()) continue;
    EXPECT_EQ(found->first, right.front());
    EXPECT_EQ(found->last, right.back());
  }
}

// A paragraph of one-byte tokens and its windows, after a question of some tokens, with random logits.
struct RandomParagraph {
  RandomParagraph(RandomSequence& random, int values) {
    const std::size_t count = random.below(20);
    for (std::uint32_t i = 0; i < count; ++i) {
      context += static_cast<char>('a' + i);
      tokens.push_back({.begin = i, .end = i + 1});
    }
    const auto question = static_cast<std::int64_t>(random.below(4));
    const auto room = 1 + static_cast<std::int64_t>(random.below(9));
    const auto shared = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(room)));
    const std::vector<squad::Window> cut = squad::windows_of(std::ssize(tokens), room, shared);
    storage.reserve(2 * cut.size());
    for (const squad::Window& window : cut) {
      const auto length = static_cast<std::size_t>(window.count + question + 3);
      for (int side = 0; side < 2; ++side) {
        std::vector<float>& logits = storage.emplace_back();
        while (logits.size() < length) {
          logits.push_back(static_cast<float>(random.below(static_cast<std::uint64_t>(values))) / 4);
        }
      }
      windows.push_back({.window = window,
                         .begin_index = question + 2,
                         .begins = storage[storage.size() - 2],
                         .ends = storage.back()});
    }
  }
  std::string context;
  std::vector<TokenSpan> tokens;
  std::vector<std::vector<float>> storage;
  std::vector<squad::WindowLogits> windows;
};

struct TriedSpans {
  float score = -1;  // of the best; -1: there is none
  std::vector<std::string> texts;
};

TriedSpans all_best_spans(const RandomParagraph& paragraph, std::int64_t most) {
  TriedSpans best;
  for (const squad::WindowLogits& logits : paragraph.windows) {
    for (std::int64_t first = 0; first < logits.window.count; ++first) {
      for (std::int64_t last = first; last < std::min(first + most, logits.window.count); ++last) {
        const float score = logits.begins[static_cast<std::size_t>(logits.begin_index + first)] +
                            logits.ends[static_cast<std::size_t>(logits.begin_index + last)];
        if (score > best.score) best = {.score = score, .texts = {}};
        if (score < best.score) continue;
        best.texts.push_back(paragraph.context.substr(static_cast<std::size_t>(logits.window.first + first),
                                                      static_cast<std::size_t>(last - first + 1)));
      }
    }
  }
  return best;
}

TEST(SquadAnswers, TheBestOfAllSpansWinsUnlessThereIsNone) {
  RandomSequence random({.seed = 3});
  int empty = 0, tied = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    const RandomParagraph paragraph(random, trial % 2 == 0 ? 1 << 20 : 8);
    squad::AnswerRules rules{.max_answer_length = 1 + static_cast<std::int64_t>(random.below(6)),
                             .n_best = 100,
                             .may_be_none = random.below(2) == 0,
                             .null_score_diff_threshold = 0.25 * static_cast<double>(random.below(5)) - 0.5};
    const TriedSpans best = all_best_spans(paragraph, rules.max_answer_length);
    float none = 1e30F;
    for (const squad::WindowLogits& logits : paragraph.windows)
      none = std::min(none, logits.begins[0] + logits.ends[0]);
    const bool is_none =
        best.texts.empty() || (rules.may_be_none && none - best.score > rules.null_score_diff_threshold);
    const std::string answer(squad::best_answer(paragraph.context, paragraph.tokens, paragraph.windows, rules));
    if (is_none) {
      EXPECT_EQ(answer, "");
    } else {
      EXPECT_THAT(best.texts, ::testing::Contains(answer));
    }
    empty += is_none ? 1 : 0;
    tied += best.texts.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(empty, 300);
  EXPECT_GT(tied, 300);
}

TEST(SquadAnswers, OnlyTheLargestLogitsOfEachSideAreTried) {
  const std::string context = "abcd";
  std::vector<TokenSpan> tokens;
  for (std::uint32_t i = 0; i < 4; ++i) tokens.push_back({.begin = i, .end = i + 1});
  // [CLS] [SEP] a b c d [SEP]: the best first token is after the best last token.
  const std::vector<float> begins = {0, 0, 1, 2, 3, 4, 0}, ends = {0, 0, 4, 3, 2, 1, 0};
  const std::vector<squad::WindowLogits> windows = {
      {.window = {0, 4}, .begin_index = 2, .begins = begins, .ends = ends}};
  EXPECT_EQ(squad::best_answer(context, tokens, windows, {.n_best = 1}), "");
  EXPECT_EQ(squad::best_answer(context, tokens, windows, {.n_best = 2}), "");
  EXPECT_EQ(squad::best_answer(context, tokens, windows, {.n_best = 3}),
            "c");  // as much as b, whose beginning's logit is smaller
}

TEST(SquadAnswers, ALogitThatIsNoNumberIsNoneOfTheLargest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<TokenSpan> tokens = {{.begin = 0, .end = 1}, {.begin = 1, .end = 2}};
  const std::vector<float> all(5, nan), one = {nan, nan, nan, 1, nan};
  const std::vector<squad::WindowLogits> diverged = {{.window = {0, 2}, .begin_index = 2, .begins = all, .ends = all}};
  const std::vector<squad::WindowLogits> partly = {{.window = {0, 2}, .begin_index = 2, .begins = one, .ends = one}};
  for (const bool may_be_none : {false, true}) {
    EXPECT_EQ(squad::best_answer("ab", tokens, diverged, {.may_be_none = may_be_none}), "");
    EXPECT_EQ(squad::best_answer("ab", tokens, partly, {.n_best = 2, .may_be_none = false}), "b");
  }
}

}  // namespace
}  // namespace teratron::testing
