// The parts of a corpus cover it, keep documents whole while there are enough, and have their shares.
#include "data/split/corpus_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "data/dataset_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;

TEST(ParseSplit, ReadsOneToThreeWeights) {
  EXPECT_THAT(parse_split("29,1"), ElementsAre(29, 1));
  EXPECT_THAT(parse_split("969,30,1"), ElementsAre(969, 30, 1));
  EXPECT_THAT(parse_split("1"), ElementsAre(1));
  EXPECT_THAT(parse_split("0.95,0,0.05"), ElementsAre(0.95, 0, 0.05));
}

TEST(ParseSplit, RefusesEverythingElse) {
  for (const char* text :
       {"", ",", "29,", ",1", "29;1", "29,1,1,1", "-1,2", "0,0", "nan,1", "inf", "1e300", "a", "29, 1", "1 "}) {
    EXPECT_THAT(parse_split(text), ::testing::IsEmpty()) << text;
  }
}

TEST(SplitCorpus, PartsAreRunsOfWholeDocumentsWithTheirShare) {
  const TemporaryFolder folder;
  std::mt19937_64 random(1);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t documents = std::uniform_int_distribution<std::int64_t>(3, round % 2 == 0 ? 12 : 200)(random);
    const auto dataset = numbered_dataset(folder / "corpus", random_lengths(random, documents, 9));
    std::vector<double> weights(std::uniform_int_distribution<std::size_t>(1, 3)(random));
    for (double& weight : weights) weight = std::uniform_int_distribution<int>(0, 30)(random);
    weights[round % weights.size()] += 1;
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);

    const auto parts = split_corpus(*dataset, weights, kFileOrder);
    ASSERT_EQ(parts.size(), weights.size());
    std::int64_t document = 0, token = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i].first_document, document);
      EXPECT_EQ(parts[i].run.begin, token);
      for (std::int64_t d = 0; d < parts[i].documents(); ++d) {
        EXPECT_EQ(parts[i].document(*dataset, d), dataset->document(document + d));
      }
      // Rounding at both ends, and up to two documents given to parts that would have none.
      const double share = static_cast<double>(documents) * weights[i] / total;
      EXPECT_NEAR(static_cast<double>(parts[i].documents()), share, 3.0);
      EXPECT_EQ(parts[i].documents() > 0, weights[i] > 0);
      document = parts[i].end_document;
      token = parts[i].run.end;
    }
    EXPECT_EQ(document, documents);
    EXPECT_EQ(token, dataset->tokens());
  }
}

TEST(SplitCorpus, TwentyNineToOneOfThirtyDocumentsIsExact) {
  const TemporaryFolder folder;
  const auto dataset = numbered_dataset(folder / "corpus", std::vector<std::int64_t>(30, 10));
  const auto parts = split_corpus(*dataset, std::vector<double>{29, 1}, kFileOrder);
  EXPECT_EQ(parts[0].run, (TokenRange{0, 290}));
  EXPECT_EQ(parts[1].run, (TokenRange{290, 300}));
  EXPECT_EQ(parts[0].name, "training");
  EXPECT_EQ(parts[1].name, "validation");
}

TEST(SplitCorpus, EveryWeightGetsADocumentHoweverSmall) {
  const TemporaryFolder folder;
  const auto dataset = numbered_dataset(folder / "corpus", {10, 20, 30});
  const auto parts = split_corpus(*dataset, std::vector<double>{1e6, 1, 1}, kFileOrder);
  EXPECT_EQ(parts[0].run, (TokenRange{0, 10}));
  EXPECT_EQ(parts[1].run, (TokenRange{10, 30}));
  EXPECT_EQ(parts[2].run, (TokenRange{30, 60}));
}

TEST(SplitCorpus, OneDocumentIsCutByPosition) {
  const TemporaryFolder folder;
  const auto dataset = numbered_dataset(folder / "corpus", {3000});
  const auto parts = split_corpus(*dataset, std::vector<double>{29, 1}, kFileOrder);
  ASSERT_EQ(parts[0].documents(), 1);
  EXPECT_EQ(parts[0].document(*dataset, 0), (TokenRange{0, 2900}));
  ASSERT_EQ(parts[1].documents(), 1);
  EXPECT_EQ(parts[1].document(*dataset, 0), (TokenRange{2900, 3000}));
}

TEST(SplitCorpus, TwoDocumentsForThreePartsAreCutByPosition) {
  const TemporaryFolder folder;
  const auto dataset = numbered_dataset(folder / "corpus", {40, 60});
  const auto parts = split_corpus(*dataset, std::vector<double>{3, 1, 1}, kFileOrder);
  ASSERT_EQ(parts[0].documents(), 2);
  EXPECT_EQ(parts[0].document(*dataset, 0), (TokenRange{0, 40}));
  EXPECT_EQ(parts[0].document(*dataset, 1), (TokenRange{40, 60}));
  ASSERT_EQ(parts[1].documents(), 1);
  EXPECT_EQ(parts[1].document(*dataset, 0), (TokenRange{60, 80}));
  ASSERT_EQ(parts[2].documents(), 1);
  EXPECT_EQ(parts[2].document(*dataset, 0), (TokenRange{80, 100}));
}

TEST(SplitCorpus, ACutByPositionAtADocumentsEndBelongsToTheNextPart) {
  const TemporaryFolder folder;
  const auto dataset = numbered_dataset(folder / "corpus", {40, 60});
  const auto parts = split_corpus(*dataset, std::vector<double>{2, 2, 1}, kFileOrder);
  EXPECT_EQ(parts[0].first_document, 0);
  EXPECT_EQ(parts[0].end_document, 1);
  EXPECT_EQ(parts[1].first_document, 1);
  EXPECT_EQ(parts[1].end_document, 2);
}

TEST(SplitCorpus, AnEmptyCorpusHasEmptyParts) {
  const TemporaryFolder folder;
  const auto dataset = numbered_dataset(folder / "corpus", {});
  for (const CorpusPart& part : split_corpus(*dataset, std::vector<double>{29, 1}, kFileOrder)) {
    EXPECT_EQ(part.documents(), 0);
    EXPECT_EQ(part.tokens(), 0);
  }
}

}  // namespace
}  // namespace teratron::testing
