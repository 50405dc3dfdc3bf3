// The n-gram baselines against a model written straight from the definitions, with maps of whole n-grams and no thought
// for speed, and the property that makes a score comparable: probabilities that sum to one.
#include "eval/ngram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "base/error.h"

namespace teratron::testing {
namespace {

using Tokens = std::vector<std::int32_t>;

// Interpolated modified Kneser-Ney as Chen and Goodman define it: c(h w) is the count of a trigram and, below, the
// number of different tokens seen before h w; p(w | h) = (c(h w) - D(c(h w))) / c(h *) + (D1 N1(h) + D2 N2(h) +
// D3 N3+(h)) / c(h *) * p(w | shorter h); D from the number n_k of n-grams with count k.
class Definition {
 public:
  Definition(const Tokens& tokens, std::int32_t vocab_size) : vocab_size_(vocab_size) {
    std::map<Tokens, std::set<std::int32_t>> before;
    for (std::size_t i = 2; i < tokens.size(); ++i) {
      const Tokens trigram(tokens.begin() + static_cast<std::ptrdiff_t>(i) - 2,
                           tokens.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      counts_[trigram] += 1;
      before[{trigram[1], trigram[2]}].insert(trigram[0]);
    }
    for (const auto& [bigram, tokens_before] : before) counts_[bigram] = static_cast<double>(tokens_before.size());
    std::map<Tokens, std::set<std::int32_t>> before_unigram;
    for (const auto& [bigram, ignored] : before) before_unigram[{bigram[1]}].insert(bigram[0]);
    for (const auto& [unigram, seen] : before_unigram) counts_[unigram] = static_cast<double>(seen.size());
  }

  double probability(const Tokens& context, std::int32_t token) const {
    const double lower =
        context.empty() ? 1.0 / vocab_size_ : probability(Tokens(context.begin() + 1, context.end()), token);
    double total = 0, freed = 0, own = 0;
    for (std::int32_t w = 0; w < vocab_size_; ++w) {
      const double c = count(context, w);
      total += c;
      freed += discount(context.size() + 1, c);
      if (w == token) own = c - discount(context.size() + 1, c);
    }
    return total == 0 ? lower : own / total + freed / total * lower;
  }

 private:
  double count(Tokens context, std::int32_t token) const {
    context.push_back(token);
    const auto found = counts_.find(context);
    return found == counts_.end() ? 0 : found->second;
  }
  double discount(std::size_t order, double count) const {
    std::array<double, 5> n{};
    for (const auto& [ngram, c] : counts_) {
      if (ngram.size() == order && c <= 4) n[static_cast<std::size_t>(c)] += 1;
    }
    const double y = n[1] / (n[1] + 2 * n[2]);
    std::array<double, 4> d = {0, 1 - 2 * y * n[2] / n[1], 2 - 3 * y * n[3] / n[2], 3 - 4 * y * n[4] / n[3]};
    // Not numbers above zero: too few n-grams to estimate from.
    if (!(d[1] > 0 && d[2] > 0 && d[3] > 0 && std::isfinite(d[3]))) d = {0, 0.5, 1, 1.5};
    return d[static_cast<std::size_t>(std::min(count, 3.0))];
  }

  double vocab_size_;
  std::map<Tokens, double> counts_;
};

// Zipf-like and with memory, so that all counts occur.
Tokens random_tokens(std::mt19937_64& random, std::size_t length, std::int32_t vocab_size) {
  Tokens tokens(length);
  for (std::size_t i = 0; i < length; ++i) {
    const double u = std::uniform_real_distribution<double>(0, 1)(random);
    tokens[i] = static_cast<std::int32_t>(u * u * u * vocab_size);
    if (i >= 2 && random() % 2 == 0) tokens[i] = (tokens[i - 1] * 3 + tokens[i - 2] + 1) % vocab_size;
  }
  return tokens;
}

TEST(KneserNeyTrigram, AgreesWithTheDefinition) {
  std::mt19937_64 random(1);
  for (const std::size_t length : {3U, 4U, 10U, 40U, 200U, 600U}) {
    const std::int32_t vocab_size = 12;
    const Tokens tokens = random_tokens(random, length, vocab_size - 2);  // two are never seen
    const KneserNeyTrigram model(tokens, vocab_size);
    const Definition definition(tokens, vocab_size);
    for (int round = 0; round < 60; ++round) {
      const Tokens context = random_tokens(random, static_cast<std::size_t>(round % 3), vocab_size);
      const auto token = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(vocab_size));
      EXPECT_NEAR(model.probability(context, token), definition.probability(context, token), 1e-13);
    }
  }
}

TEST(KneserNeyTrigram, ProbabilitiesSumToOneAfterEveryContext) {
  std::mt19937_64 random(2);
  for (const std::size_t length : {0U, 1U, 2U, 3U, 50U, 5000U}) {
    const std::int32_t vocab_size = 37;
    const KneserNeyTrigram model(random_tokens(random, length, vocab_size - 3), vocab_size);
    for (std::int32_t a = -1; a < vocab_size; ++a) {
      for (std::int32_t b = -1; b < vocab_size; ++b) {
        Tokens context;
        if (a >= 0) context.push_back(a);
        if (b >= 0) context.push_back(b);
        double sum = 0;
        for (std::int32_t token = 0; token < vocab_size; ++token) {
          const double probability = model.probability(context, token);
          ASSERT_GT(probability, 0);
          sum += probability;
        }
        ASSERT_NEAR(sum, 1, 1e-12) << length << " tokens, context " << a << " " << b;
      }
    }
  }
}

TEST(KneserNeyTrigram, LooksAtTheLastTwoTokensOfALongerContext) {
  std::mt19937_64 random(3);
  const KneserNeyTrigram model(random_tokens(random, 500, 9), 9);
  EXPECT_EQ(model.probability(Tokens{8, 1, 2, 3}, 4), model.probability(Tokens{2, 3}, 4));
  EXPECT_NE(model.probability(Tokens{2, 3}, 4), model.probability(Tokens{3}, 4));
}

// Llama 3's has 128,256 tokens.
TEST(KneserNeyTrigram, TakesLargeVocabularies) {
  std::mt19937_64 random(4);
  constexpr std::int32_t kVocabulary = 131072;
  const KneserNeyTrigram model(random_tokens(random, 20000, kVocabulary), kVocabulary);
  const Tokens context = {kVocabulary - 1, kVocabulary - 2};
  double sum = 0;
  for (std::int32_t token = 0; token < kVocabulary; ++token) sum += model.probability(context, token);
  EXPECT_NEAR(sum, 1, 1e-10);
  EXPECT_THROW(KneserNeyTrigram(Tokens{1}, (1 << 21) + 1), InternalError);
  EXPECT_THROW(KneserNeyTrigram(Tokens{1, 5}, 5), InternalError);
  EXPECT_THROW(model.probability(Tokens{}, kVocabulary), InternalError);
}

TEST(KneserNeyTrigram, IsTheSameWhateverTheNumbersOfTokens) {
  std::mt19937_64 random(6);
  constexpr std::int32_t kVocabulary = 1 << 21, kApart = kVocabulary / 30;
  const auto apart = [](Tokens tokens) {
    for (std::int32_t& token : tokens) token = kVocabulary - 1 - (29 - token) * kApart;
    return tokens;
  };
  const Tokens tokens = random_tokens(random, 2000, 30);
  const KneserNeyTrigram near(tokens, kVocabulary), far(apart(tokens), kVocabulary);
  for (int round = 0; round < 60; ++round) {
    const Tokens context = random_tokens(random, static_cast<std::size_t>(round % 3), 30), next = {round % 30};
    EXPECT_EQ(far.probability(apart(context), apart(next).front()), near.probability(context, next.front()));
  }
}

TEST(NgramScores, AreTheMeanOfMinusLogProbabilities) {
  std::mt19937_64 random(5);
  const Tokens training = random_tokens(random, 3000, 50), text = random_tokens(random, 300, 50);
  const KneserNeyTrigram trigram(training, 50);
  const UnigramModel unigram(training, 50);
  for (const std::size_t first : {0U, 1U, 299U}) {
    double trigram_sum = 0, unigram_sum = 0;
    for (std::size_t i = first; i < text.size(); ++i) {
      trigram_sum -= std::log(trigram.probability(std::span(text).first(i), text[i]));
      unigram_sum -= std::log(unigram.probability(text[i]));
    }
    const auto count = static_cast<double>(text.size() - first);
    EXPECT_DOUBLE_EQ(trigram.nats_per_token(text, static_cast<std::int64_t>(first)), trigram_sum / count);
    EXPECT_DOUBLE_EQ(unigram.nats_per_token(text, static_cast<std::int64_t>(first)), unigram_sum / count);
  }
  // The text has memory, so looking back pays.
  EXPECT_LT(trigram.nats_per_token(text), unigram.nats_per_token(text) - 0.2);
}

TEST(UnigramModel, AddsOneToEveryCount) {
  const UnigramModel model(Tokens{3, 1, 3, 3}, 6);
  EXPECT_DOUBLE_EQ(model.probability(3), 0.4);
  EXPECT_DOUBLE_EQ(model.probability(1), 0.2);
  EXPECT_DOUBLE_EQ(model.probability(0), 0.1);
}

}  // namespace
}  // namespace teratron::testing
