// Parts of documents drawn at random: their shares, who keeps its part, and that they are read as file-order parts are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "data/dataset_fixture.h"
#include "data/split/corpus_split.h"
#include "data/split/document_choice.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Parts = std::vector<std::uint8_t>;

// One to three weights between 0 and 30, at least one of them above zero.
std::vector<double> random_weights(std::mt19937_64& random) {
  std::vector<double> weights(std::uniform_int_distribution<std::size_t>(1, 3)(random));
  for (double& weight : weights) weight = std::uniform_int_distribution<int>(0, 30)(random);
  weights[random() % weights.size()] += 1;
  return weights;
}

std::int64_t positive(const std::vector<double>& weights) {
  return std::ranges::count_if(weights, [](double weight) { return weight > 0; });
}

std::vector<std::int64_t> sizes_of(const Parts& parts, std::size_t count) {
  std::vector<std::int64_t> sizes(count);
  for (const std::uint8_t part : parts) ++sizes.at(part);
  return sizes;
}

TEST(DrawParts, SharesAreThoseOfTheWeightsWithinFourStandardDeviations) {
  std::mt19937_64 random(1);
  double squares = 0, count = 0;
  for (int round = 0; round < 400; ++round) {
    const std::vector<double> weights = random_weights(random);
    const std::int64_t documents = std::uniform_int_distribution<std::int64_t>(500, 5000)(random);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    const auto sizes = sizes_of(draw_parts(documents, weights, random()), weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double share = weights[i] / total, expected = static_cast<double>(documents) * share;
      const double sigma = std::sqrt(expected * (1 - share));
      // Some of so many draws lie further out; their squares below say that no more do than chance allows.
      EXPECT_NEAR(static_cast<double>(sizes[i]), expected, 4 * sigma) << "weight " << i << " of round " << round;
      if (sigma == 0) continue;
      squares += std::pow((static_cast<double>(sizes[i]) - expected) / sigma, 2);
      ++count;
    }
  }
  // A mean of squared normal values: 1, with a variance of at most 4 / count (two parts' deviations are the same).
  EXPECT_NEAR(squares / count, 1, 4 * 2 / std::sqrt(count));
}

TEST(DrawParts, EveryStretchOfTheFileHasItsShare) {
  const Parts parts = draw_parts(30000, std::vector<double>{29, 1}, 1);
  const double sigma = std::sqrt(3000.0 / 30 * 29 / 30);
  for (int stretch = 0; stretch < 10; ++stretch) {
    const auto held_out = std::count(parts.begin() + 3000 * stretch, parts.begin() + 3000 * (stretch + 1), 1);
    EXPECT_NEAR(static_cast<double>(held_out), 100, 4 * sigma);
  }
}

TEST(DrawParts, DocumentsKeepTheirPartsWhenTheCorpusGrows) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 100; ++round) {
    const std::vector<double> weights = random_weights(random);
    const std::uint64_t seed = random();
    const Parts before = draw_parts(1000, weights, seed), after = draw_parts(1000 + 7 * round, weights, seed);
    EXPECT_TRUE(std::ranges::equal(before, std::span(after).first(before.size())));
  }
}

TEST(DrawParts, AnotherSeedDrawsOtherDocuments) {
  const std::vector<double> weights = {1, 1};
  const Parts one = draw_parts(10000, weights, 1), other = draw_parts(10000, weights, 2);
  double same = 0;
  for (std::size_t i = 0; i < one.size(); ++i) same += one[i] == other[i] ? 1 : 0;
  EXPECT_NEAR(same, 5000, 4 * 50);
}

// A run resumed by a later version must hold out the same documents, so these values never change.
TEST(DrawParts, TheDrawIsTheSameForEver) {
  const Parts parts = draw_parts(200, std::vector<double>{29, 1}, 1);
  std::vector<std::size_t> held_out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == 1) held_out.push_back(i);
  }
  EXPECT_THAT(held_out, ElementsAre(8, 13, 47, 51, 93, 101, 103, 105, 109, 115, 141, 177));
}

TEST(DrawParts, EveryWeightAboveZeroGetsADocumentAndZeroGetsNone) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::vector<double> weights = random_weights(random);
    weights[random() % weights.size()] *= 1e-6;  // a part that a draw leaves empty
    const std::int64_t documents = positive(weights) + round % 4;
    const auto sizes = sizes_of(draw_parts(documents, weights, random()), weights.size());
    EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), documents);
    for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_EQ(sizes[i] > 0, weights[i] > 0) << round;
  }
}

TEST(DrawParts, AnEmptyPartTakesTheDocumentNearestToItsShare) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t seed = random();
    const Parts parts = draw_parts(20, std::vector<double>{1, 1e-9}, seed);
    const auto taken = std::ranges::find(parts, 1) - parts.begin();
    // The one with the largest number: in a wider and wider last part, it is always there.
    for (const double weight : {0.01, 0.1, 0.3, 1.0}) {
      const Parts wider = draw_parts(20, std::vector<double>{1, weight}, seed);
      EXPECT_EQ(wider[static_cast<std::size_t>(taken)], 1) << "weight " << weight << " of round " << round;
    }
  }
}

struct RandomSplit {
  std::shared_ptr<const IndexedDataset> dataset;
  std::vector<CorpusPart> parts;
};

// Corpora of few documents and of many, which cross words and marks of a subset's bitmap, many documents empty.
RandomSplit random_split(const TemporaryFolder& folder, std::mt19937_64& random, int round) {
  const std::int64_t most = std::array<std::int64_t, 4>{3, 70, 600, 3000}[static_cast<std::size_t>(round % 4)];
  const std::int64_t documents = std::uniform_int_distribution<std::int64_t>(3, most)(random);
  const auto dataset = numbered_dataset(folder / "corpus", random_lengths(random, documents, 1 + round % 7));
  return {dataset, split_corpus(*dataset, random_weights(random), {.seed = random()})};
}

TEST(RandomSplit, PartsAreDisjointAndCompleteSetsOfWholeDocumentsInFileOrder) {
  const TemporaryFolder folder;
  std::mt19937_64 random(5);
  for (int round = 0; round < 60; ++round) {
    const auto [dataset, parts] = random_split(folder, random, round);
    std::vector<TokenRange> documents, expected;
    for (const CorpusPart& part : parts) {
      std::int64_t tokens = 0, before = -1;
      ASSERT_NE(part.drawn, nullptr);
      for (std::int64_t i = 0; i < part.documents(); ++i) {
        EXPECT_GT(part.drawn->document(i), before);
        before = part.drawn->document(i);
        documents.push_back(part.document(*dataset, i));
        EXPECT_EQ(documents.back(), dataset->document(before));
        tokens += documents.back().size();
      }
      EXPECT_EQ(part.tokens(), tokens);
    }
    for (std::int64_t i = 0; i < dataset->documents(); ++i) expected.push_back(dataset->document(i));
    std::ranges::sort(documents, {}, [](const TokenRange& range) { return std::pair(range.begin, range.end); });
    EXPECT_EQ(documents, expected);
  }
}

TEST(RandomSplit, AnyReadIsACutOfTheDocumentsJoinedInFileOrder) {
  const TemporaryFolder folder;
  std::mt19937_64 random(6);
  for (int round = 0; round < 60; ++round) {
    const auto [dataset, parts] = random_split(folder, random, round);
    for (const CorpusPart& part : parts) {
      Document joined;
      for (std::int64_t i = 0; i < part.documents(); ++i) {
        const TokenRange document = part.document(*dataset, i);
        for (std::int64_t token = document.begin; token < document.end; ++token) {
          joined.push_back(static_cast<std::int32_t>(token));
        }
      }
      for (int read = 0; read < 20; ++read) {
        // The whole part first, its empty end next.
        const auto size = static_cast<std::int64_t>(joined.size());
        const std::int64_t begin = read == 0   ? 0
                                   : read == 1 ? size
                                               : std::uniform_int_distribution<std::int64_t>(0, size)(random);
        const std::int64_t length =
            read == 0 ? size : std::uniform_int_distribution<std::int64_t>(0, size - begin)(random);
        Document tokens(static_cast<std::size_t>(length));
        part.read(*dataset, begin, tokens);
        ASSERT_EQ(tokens, Document(joined.begin() + begin, joined.begin() + begin + length));
      }
    }
  }
}

TEST(RandomSplit, ReadsOutsideOfAPartAreRefused) {
  const TemporaryFolder folder;
  const auto dataset = numbered_dataset(folder / "corpus", std::vector<std::int64_t>(30, 5));
  for (const SplitRule& rule : {kFileOrder, SplitRule{.seed = 1}}) {
    // The first part, after which the corpus continues. The message is the part's own.
    const CorpusPart part = split_corpus(*dataset, std::vector<double>{2, 1}, rule).front();
    Document two(2);
    for (const std::int64_t position : {std::int64_t{-1}, part.tokens() - 1, part.tokens() + 1}) {
      EXPECT_THAT(message_of<InternalError>([&] { part.read(*dataset, position, two); }),
                  HasSubstr("read outside of it"));
    }
    EXPECT_THROW(part.document(*dataset, part.documents()), InternalError);
  }
}

TEST(RandomSplit, FewerDocumentsThanWeightsAreCutByPositionAsInFileOrder) {
  const TemporaryFolder folder;
  for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{}, {300}, {40, 60}}) {
    const auto dataset = numbered_dataset(folder / "corpus", lengths);
    const std::vector<double> weights = {3, 1, 1};
    const auto random = split_corpus(*dataset, weights, {.seed = 1});
    const auto in_file_order = split_corpus(*dataset, weights, kFileOrder);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      EXPECT_EQ(random[i].drawn, nullptr);
      EXPECT_EQ(random[i].run, in_file_order[i].run);
      EXPECT_EQ(random[i].documents(), in_file_order[i].documents());
    }
  }
}

TEST(RandomSplit, TwoAndThreeDocumentsGiveEachWeightOne) {
  const TemporaryFolder folder;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (const std::size_t count : {2U, 3U}) {
      const auto dataset = numbered_dataset(folder / "corpus", std::vector<std::int64_t>(count, 10));
      std::vector<double> weights(count, 1);
      weights[0] = 1000;
      for (const CorpusPart& part : split_corpus(*dataset, weights, {.seed = seed})) {
        EXPECT_EQ(part.documents(), 1);
        EXPECT_EQ(part.tokens(), 10);
      }
    }
  }
}

}  // namespace
}  // namespace teratron::testing
