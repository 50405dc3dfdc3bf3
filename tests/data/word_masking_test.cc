// Masked words against the rules they are drawn by, and their numbers against those of the rules' plainest form.
#include "data/samples/word_masking.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <set>

namespace teratron::testing {
namespace {

using WordRuns = std::vector<WordRun>;

RandomStream stream_of(std::uint32_t step) { return {.seed = 9, .purpose = RandomPurpose::kBertSamples, .step = step}; }

struct Ngrams {
  WordRuns drawn;
  std::int64_t masked = 0;
};
Ngrams draw(const WordRuns& words, std::int64_t budget, const NgramLaw& law, std::uint32_t step) {
  Ngrams result;
  std::vector<std::int32_t> scratch;
  result.masked = draw_ngrams(words, budget, law, stream_of(step), result.drawn, scratch);
  return result;
}

// Some words of some sizes, with gaps.
WordRuns random_words(std::mt19937_64& random, int most_words, int longest, double gap) {
  const auto up_to = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
  std::bernoulli_distribution has_gap(gap);
  WordRuns words;
  std::int32_t at = 0;
  for (int left = up_to(most_words); left > 0; --left) {
    at += has_gap(random) ? up_to(3) : 0;
    const std::int32_t size = up_to(longest);
    words.push_back({at, at + size});
    at += size;
  }
  return words;
}

TEST(WordMasking, AWordIsItsFirstPieceAndThoseThatGoOn) {
  using enum TokenKind;
  WordRuns words;
  find_words(std::vector{kSpecial, kContinuesWord, kContinuesWord, kBeginsWord, kContinuesWord, kBeginsWord, kSpecial,
                         kContinuesWord, kSpecial, kSpecial, kBeginsWord},
             words);
  EXPECT_EQ(words, (WordRuns{{1, 3}, {3, 5}, {5, 6}, {7, 8}, {10, 11}}));
  find_words(std::vector{kSpecial, kSpecial}, words);
  EXPECT_TRUE(words.empty());
}

TEST(WordMasking, DrawsWholeWordsSideBySideWithinTheBudget) {
  std::mt19937_64 random(1);
  for (std::uint32_t round = 0; round < 3000; ++round) {
    const WordRuns words = random_words(random, 40, 5, 0.2);
    const std::int64_t budget = std::uniform_int_distribution<std::int64_t>(1, 60)(random);
    const int max_ngram = std::uniform_int_distribution<int>(1, 5)(random);
    const Ngrams result = draw(words, budget, {.longest = max_ngram, .is_geometric = round % 2 == 1}, round);
    ASSERT_FALSE(result.drawn.empty());
    std::set<std::int32_t> taken;
    std::int64_t masked = 0;
    for (const WordRun& run : result.drawn) {
      masked += run.size();
      auto word = std::ranges::find(words, run.begin, &WordRun::begin);
      ASSERT_NE(word, words.end());
      std::int32_t end = run.begin, count = 0;
      for (; word != words.end() && word->begin == end && end < run.end; ++word, ++count) end = word->end;
      ASSERT_EQ(end, run.end) << "ends within a word";
      ASSERT_LE(count, max_ngram);
      for (std::int32_t i = run.begin; i < run.end; ++i) ASSERT_TRUE(taken.insert(i).second) << "masked twice";
    }
    ASSERT_EQ(result.masked, masked);
    const std::int32_t shortest = std::ranges::min(words, {}, &WordRun::size).size();
    if (shortest > budget) {
      ASSERT_EQ(result.drawn.size(), 1U);
      ASSERT_EQ(masked, shortest);
      continue;
    }
    ASSERT_LE(masked, budget);
    for (const WordRun& word : words) {  // every word was tried; by itself, nothing but the budget stands in its way
      ASSERT_TRUE(max_ngram > 1 || taken.contains(word.begin) || masked + word.size() > budget);
    }
  }
}

// Where nothing can get in the way, the length of the first n-gram is drawn by the law itself: of 100 words in a row,
// the one that it begins with is any, and so many of them have all lengths to choose from; behind the end of the row
// there are none. Of the samples, a share p has a standard deviation of sqrt(p (1 - p) / samples).
TEST(WordMasking, LengthsGoByTheLaw) {
  constexpr std::uint32_t kSamples = 12'000;
  constexpr int kWords = 100;
  WordRuns words;
  for (std::int32_t i = 0; i < kWords; ++i) words.push_back({i, i + 1});
  for (const NgramLaw& law : {NgramLaw{}, {.longest = 1}, {.longest = 2}, {.longest = 5}, {10, true}, {4, true}}) {
    SCOPED_TRACE(fmt::format("{} words, {}", law.longest, law.is_geometric ? "geometric" : "1/n"));
    const auto longest = static_cast<std::size_t>(law.longest);
    std::vector<double> expected(longest + 1), count(longest + 1);
    for (int first = 0; first < kWords; ++first) {
      const int most = std::min(law.longest, kWords - first);
      double total = 0;
      const auto weight = [&](int n) { return law.is_geometric ? 0.2 * std::pow(0.8, n - 1) : 1.0 / n; };
      for (int n = 1; n <= most; ++n) total += weight(n);
      for (int n = 1; n <= most; ++n) expected[static_cast<std::size_t>(n)] += weight(n) / total / kWords;
    }
    for (std::uint32_t i = 0; i < kSamples; ++i) {
      ++count[static_cast<std::size_t>(draw(words, 15, law, i).drawn[0].size())];
    }
    for (std::size_t n = 1; n <= longest; ++n) {
      const double p = expected[n];
      EXPECT_NEAR(count[n] / kSamples, p, 4 * std::sqrt(std::max(0.0, p * (1 - p)) / kSamples) + 1e-12)
          << n << " words";
    }
  }
}

// Joshi et al. (arXiv 1907.10529, section 3.1): p = 0.2, at most 10, a mean length of 3.8.
TEST(WordMasking, GeometricSpansHaveTheMeanThatSpanBertNames) {
  WordRuns words;
  for (std::int32_t i = 0; i < 10'000; ++i) words.push_back({i, i + 1});
  double sum = 0;
  constexpr std::uint32_t kSamples = 300;
  for (std::uint32_t i = 0; i < kSamples; ++i) sum += draw(words, 15, {10, true}, i).drawn[0].size();
  EXPECT_NEAR(sum / kSamples, 3.8, 4 * 2.7 / std::sqrt(kSamples));
}

// Runs of versions before there was a choice read the same samples again.
TEST(WordMasking, TheDefaultDrawsWhatItAlwaysDrew) {
  WordRuns words;
  for (std::int32_t i = 0; i < 60; ++i) words.push_back({2 * i, 2 * i + 1 + i % 2});
  EXPECT_EQ(draw(words, 12, {}, 7).drawn,
            (WordRuns{{30, 32}, {54, 57}, {108, 109}, {0, 1}, {78, 80}, {12, 13}, {36, 37}, {116, 117}}));
}

// The rules as BERT's and Megatron-LM's programs put them: all n-grams listed, shuffled, tried one after the other.
WordRuns plainly_drawn(const WordRuns& words, std::int64_t budget, int max_ngram, std::mt19937_64& random) {
  std::vector<std::size_t> order(words.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::shuffle(order, random);
  std::set<std::size_t> covered;
  WordRuns drawn;
  std::int64_t masked = 0;
  for (const std::size_t first : order) {
    if (masked >= budget) break;
    std::vector<double> weights = {1};
    while (std::ssize(weights) < max_ngram && first + weights.size() < words.size()) {
      weights.push_back(1 / static_cast<double>(weights.size() + 1));
    }
    auto n = 1 + std::discrete_distribution<std::size_t>(weights.begin(), weights.end())(random);
    const auto size = [&] { return words[first + n - 1].end - words[first].begin; };
    while (n > 1 && masked + size() > budget) --n;
    if (masked + size() > budget) continue;
    bool is_free = true;
    for (std::size_t i = first; i < first + n; ++i) is_free = is_free && !covered.contains(i);
    if (!is_free) continue;
    for (std::size_t i = first; i < first + n; ++i) covered.insert(i);
    drawn.push_back({words[first].begin, words[first + n - 1].end});
    masked += size();
  }
  return drawn;
}

// Two samples of the same law: their means differ by less than 3 times the standard deviation of the difference.
struct Moments {
  double n = 0, sum = 0, squares = 0;
  void add(double value) { ++n, sum += value, squares += value * value; }
  double mean() const { return sum / n; }
  double variance_of_mean() const { return (squares / n - mean() * mean()) / n; }
};
void expect_alike(const Moments& a, const Moments& b) {
  EXPECT_NEAR(a.mean(), b.mean(), 3 * std::sqrt(a.variance_of_mean() + b.variance_of_mean()));
}

TEST(WordMasking, DrawsAsTheRulesPlainestFormDoes) {
  std::mt19937_64 random(4);
  WordRuns row;  // words of 1, 2, 1, 3, 1, 1, 2, ... tokens, 126 in all
  std::int32_t at = 1;
  for (const std::int32_t size : {1, 2, 1, 3, 1, 1, 2, 1, 1, 4, 1}) {
    for (int again = 0; again < 7; ++again, at += size) row.push_back({at, at + size});
  }
  std::ranges::sort(row, {}, &WordRun::begin);
  constexpr std::uint32_t kSamples = 8'000;
  std::array<Moments, 5> ours,
      plain;  // n-grams; their tokens; masked tokens in the first 10, the middle 20, the last 10
  for (std::uint32_t i = 0; i < kSamples; ++i) {
    for (const auto& [drawn, moments] :
         {std::pair<WordRuns, std::array<Moments, 5>*>(draw(row, 19, {}, i).drawn, &ours),
          {plainly_drawn(row, 19, 3, random), &plain}}) {
      (*moments)[0].add(static_cast<double>(drawn.size()));
      std::array<double, 3> masked{};
      for (const WordRun& run : drawn) {
        (*moments)[1].add(run.size());
        for (std::int32_t token = run.begin; token < run.end; ++token) {
          if (token < 10) ++masked[0];
          if (token >= at / 2 - 10 && token < at / 2 + 10) ++masked[1];
          if (token >= at - 10) ++masked[2];
        }
      }
      for (std::size_t k = 0; k < 3; ++k) (*moments)[2 + k].add(masked[k]);
    }
  }
  for (std::size_t k = 0; k < ours.size(); ++k) {
    SCOPED_TRACE(k);
    expect_alike(ours[k], plain[k]);
  }
}

TEST(WordMasking, TheBudgetIsTheShareRoundedAndOneAtLeast) {
  EXPECT_EQ(masking_budget(5, 0.15), 1);
  EXPECT_EQ(masking_budget(3, 0.01), 1);
  EXPECT_EQ(masking_budget(128, 0.15), 19);
  EXPECT_EQ(masking_budget(512, 0.15), 77);
  EXPECT_EQ(masking_budget(10, 0.25), 2);
  EXPECT_EQ(masking_budget(14, 0.25), 4);
}

TEST(WordMasking, NothingIsDrawnWhereThereAreNoWords) {
  const Ngrams result = draw({}, 5, {}, 0);
  EXPECT_TRUE(result.drawn.empty());
  EXPECT_EQ(result.masked, 0);
}

}  // namespace
}  // namespace teratron::testing
