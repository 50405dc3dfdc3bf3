// What a million tokens of BERT's samples look like, beside what the rules say. Of n draws, a share p has a standard
// deviation of sqrt(p (1 - p) / n); bounds are three of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/bert_fixture.h"

namespace teratron::testing {
namespace {

constexpr double kMillion = 1e6;

double deviations(double share, double n) { return 3 * std::sqrt(share * (1 - share) / n); }

class MillionTokens : public ::testing::Test {
 protected:
  // Sentences of up to 2 * mean - 1 tokens, drawn from a vocabulary.
  void make_corpus(std::int64_t documents, std::int64_t sentences, std::int64_t mean, std::int64_t vocab_size,
                   double continues) {
    std::mt19937_64 random(7);
    std::uniform_int_distribution<std::int64_t> length(1, 2 * mean - 1);
    std::uniform_int_distribution<std::int32_t> token(kFirstOrdinary, static_cast<std::int32_t>(vocab_size) - 1);
    std::vector<std::vector<Document>> corpus(static_cast<std::size_t>(documents));
    for (auto& document : corpus) {
      document.resize(static_cast<std::size_t>(sentences));
      for (auto& sentence : document) {
        sentence.resize(static_cast<std::size_t>(length(random)));
        for (auto& id : sentence) id = token(random);
      }
    }
    open(corpus, vocab_size);
    tokens_ = random_tokens(random, vocab_size, continues, 0);
  }
  void open(const std::vector<std::vector<Document>>& corpus, std::int64_t vocab_size) {
    write_sentences(folder_ / "corpus", corpus, vocab_size);
    dataset_ = std::make_shared<const IndexedDataset>(IndexedDataset::open(folder_ / "corpus"));
  }

  // Batches of samples until `body` has seen a million tokens; returns how many samples.
  template <class Body>
  double for_a_million(std::int64_t seq_length, const BertOptions& options, const Body& body) {
    const BertSamples samples(dataset_, split_corpus(*dataset_, std::vector<double>{1}, kFileOrder).front(), seq_length,
                              SampleOrder::kShuffled, 11, tokens_, options);
    std::int64_t read = 0;
    for (double tokens = 0; tokens < kMillion; read += 256) {
      const SampleBatch batch = read_batch(samples, {read, 256});
      tokens += std::accumulate(batch.key_lengths.begin(), batch.key_lengths.end(), 0.0);
      for (std::size_t i = 0; i < 256; ++i) body(batch, i);
    }
    return static_cast<double>(read);
  }

  const TemporaryFolder folder_;
  std::shared_ptr<const IndexedDataset> dataset_;
  BertTokens tokens_;
};

TEST_F(MillionTokens, FifteenPercentAreMaskedInThreeWays) {
  constexpr std::int64_t kVocabulary = 1000, kLength = 131;
  make_corpus(200, 40, 12, kVocabulary, 0.25);
  double tokens = 0, budgets = 0, masked = 0, hidden = 0, kept = 0, replaced = 0, sum_of_replaced = 0;
  const double samples = for_a_million(kLength, {.short_seq_prob = 1}, [&](const SampleBatch& batch, std::size_t at) {
    tokens += batch.key_lengths[at];
    budgets += static_cast<double>(masking_budget(batch.key_lengths[at], 0.15));
    for (std::size_t i = at * kLength; i < (at + 1) * kLength; ++i) {
      if (batch.weights[i] == 0) continue;
      ++masked;
      if (batch.ids[i] == tokens_.mask) {
        ++hidden;
      } else if (batch.ids[i] == batch.targets[i]) {
        ++kept;
      } else {
        ++replaced;
        sum_of_replaced += batch.ids[i];
      }
    }
  });
  // Each sample's number is rounded, which is off by anything from -1/2 to 1/2: a variance of 1/12, since the lengths
  // of samples are drawn evenly. In samples of a few words, an n-gram may be passed over where a shorter one would have
  // fitted, or the shortest word be longer than the number.
  EXPECT_NEAR(masked, budgets, 0.001 * budgets);
  EXPECT_NEAR(budgets, 0.15 * tokens, 3 * std::sqrt(samples / 12));
  EXPECT_NEAR(hidden / masked, 0.8, deviations(0.8, masked));
  // A token is replaced by itself once in so many times.
  constexpr double kOrdinary = kVocabulary - kFirstOrdinary, kSelf = 1 / kOrdinary;
  EXPECT_NEAR(kept / masked, 0.1 + 0.1 * kSelf, deviations(0.1, masked));
  EXPECT_NEAR(replaced / masked, 0.1 - 0.1 * kSelf, deviations(0.1, masked));
  // An even draw from k values has a variance of (k^2 - 1) / 12.
  EXPECT_NEAR(sum_of_replaced / replaced, kFirstOrdinary + (kOrdinary - 1) / 2,
              3 * std::sqrt((kOrdinary * kOrdinary - 1) / (12 * replaced)));
}

// With room for three masked tokens, the first n-gram fills it where it is of three words: 2 times in 11. In other
// samples, three tokens lie side by side by chance: at most 4 of the 125 tokens touch the first two, 2 of them the
// first one and then 4 both. Near the end of a side, there may be less than three words: 4 in 125.
TEST_F(MillionTokens, NgramsOfThreeWordsAreAsFrequentAsTheRuleSays) {
  constexpr std::int64_t kLength = 128;
  make_corpus(400, 40, 12, 1000, 0);
  double full = 0, in_a_row = 0;
  for_a_million(kLength, {.masked_lm_prob = 3.0 / 128, .short_seq_prob = 0},
                [&](const SampleBatch& batch, std::size_t at) {
                  if (batch.key_lengths[at] != kLength) return;
                  const auto begin = batch.weights.begin() + static_cast<std::ptrdiff_t>(at) * kLength;
                  ASSERT_EQ(std::accumulate(begin, begin + kLength, 0.0F), 3);
                  const auto first = std::find(begin, begin + kLength, 1.0F);
                  ++full;
                  in_a_row += first[1] == 1 && first[2] == 1 ? 1 : 0;
                });
  constexpr double kShare = 2.0 / 11;
  EXPECT_GT(full, 5000);
  EXPECT_GT(in_a_row / full, kShare * (1 - 4.0 / 125) - deviations(kShare, full));
  EXPECT_LT(in_a_row / full, kShare + 4.0 / 125 + deviations(kShare, full));
}

TEST_F(MillionTokens, HalfOfThePairsAreSwappedAndEachCutIsEquallyLikely) {
  constexpr std::int64_t kLength = 64, kSentence = 10, kSentences = 4;
  std::vector<std::vector<Document>> corpus(500, std::vector<Document>(kSentences, Document(kSentence)));
  std::int32_t next = kFirstOrdinary;
  for (auto& document : corpus) {
    for (auto& sentence : document) std::iota(sentence.begin(), sentence.end(), std::exchange(next, next + kSentence));
  }
  open(corpus, 1 << 20);
  std::mt19937_64 random(3);
  tokens_ = random_tokens(random, next, 0.3, 0);
  double swapped = 0;
  std::array<double, kSentences> cut{};  // by the sentences of the earlier part
  const double samples = for_a_million(kLength, {.short_seq_prob = 0}, [&](const SampleBatch& batch, std::size_t at) {
    const auto types = batch.token_types.begin() + static_cast<std::ptrdiff_t>(at) * kLength;
    const auto of_b = std::accumulate(types, types + kLength, 0) - 1;  // without the [SEP]
    swapped += batch.labels[at];
    const std::int64_t earlier = batch.labels[at] == 1 ? of_b : kSentence * kSentences - of_b;
    ASSERT_EQ(earlier % kSentence, 0);
    ++cut[static_cast<std::size_t>(earlier / kSentence)];
  });
  EXPECT_NEAR(swapped / samples, 0.5, deviations(0.5, samples));
  for (std::size_t i = 1; i < kSentences; ++i) EXPECT_NEAR(cut[i] / samples, 1.0 / 3, deviations(1.0 / 3, samples));
}

TEST_F(MillionTokens, LongPairsAreCutAtEitherEnd) {
  constexpr std::int64_t kLength = 67, kSentence = 90;
  std::vector<std::vector<Document>> corpus(200, std::vector<Document>(2, Document(kSentence)));
  std::int32_t next = kFirstOrdinary;
  for (auto& document : corpus) {
    for (auto& sentence : document) std::iota(sentence.begin(), sentence.end(), std::exchange(next, next + kSentence));
  }
  open(corpus, 1 << 20);
  std::mt19937_64 random(3);
  tokens_ = random_tokens(random, next, 0.3, 0);
  double at_begin = 0;
  const double samples = for_a_million(kLength, {.short_seq_prob = 0}, [&](const SampleBatch& batch, std::size_t at) {
    const auto begin = batch.targets.begin() + static_cast<std::ptrdiff_t>(at) * kLength;
    ASSERT_EQ(batch.key_lengths[at], kLength);
    for (const std::int32_t first : {begin[1], begin[1 + 32 + 1]}) {
      at_begin += static_cast<double>((first - kFirstOrdinary) % kSentence);
    }
  });
  const double cut = samples * 2 * static_cast<double>(kSentence - 32);  // tokens, each at either end
  EXPECT_NEAR(at_begin / cut, 0.5, deviations(0.5, cut));
}

}  // namespace
}  // namespace teratron::testing
