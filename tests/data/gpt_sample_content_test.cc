// Content of single samples: the tokens of validation, and the documents that a sample is from.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "data/random_corpus.h"

namespace teratron::testing {
namespace {

TEST(GptSamples, ValidationIsReadInOrderAndTheSameEveryTime) {
  const TemporaryFolder folder;
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    const auto [dataset, part, seq_length] = random_corpus(folder, random);
    const GptSamples samples(dataset, part, seq_length, SampleOrder::kSequential, random());
    const Document stream = tokens_of(*dataset, part);
    for (std::int64_t position = 0; position < 2 * samples.samples_per_epoch(); ++position) {
      const auto begin = stream.begin() + position % samples.samples_per_epoch() * seq_length;
      ASSERT_EQ(sample_of(samples, position), Document(begin, begin + seq_length + 1));
    }
  }
}

TEST(GptSamples, TheSourceOfASampleIsItsDocumentsAndTheTokensInThem) {
  const TemporaryFolder folder;
  std::mt19937_64 random(2);
  for (int round = 0; round < 30; ++round) {
    const auto [dataset, part, seq_length] = random_corpus(folder, random);
    const GptSamples samples(dataset, part, seq_length, SampleOrder::kShuffled, random());
    const auto position = static_cast<std::int64_t>(random() % 1000);
    std::vector<std::pair<std::int64_t, Document>> pieces;  // tokens by their document
    for (const std::int32_t token : sample_of(samples, position)) {
      std::int64_t number = 0;
      while (dataset->document(number).end <= token) ++number;
      if (pieces.empty() || pieces.back().first != number) pieces.emplace_back(number, Document());
      pieces.back().second.push_back(token);
    }
    std::string expected;
    for (std::size_t i = 0; i < std::min<std::size_t>(4, pieces.size()); ++i) {
      const auto& [number, tokens] = pieces[i];
      const std::int64_t begin = dataset->document(number).begin;
      expected += fmt::format("{}document {} of '{}', tokens {} to {}", i == 0 ? "" : "; ", number,
                              (folder / "corpus").string(), tokens.front() - begin, tokens.back() - begin);
    }
    if (pieces.size() > 4) expected += fmt::format("; and {} more documents", pieces.size() - 4);
    EXPECT_EQ(samples.source(position), expected);
  }
}

}  // namespace
}  // namespace teratron::testing
