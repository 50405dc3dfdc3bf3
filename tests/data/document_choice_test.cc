// Exact shares, and samples in which every set of documents is equally likely.
#include "data/split/document_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/philox.h"

namespace teratron::testing {
namespace {

using Parts = std::vector<std::uint8_t>;

TEST(DocumentChoice, PartsHaveTheirSharesToADocument) {
  RandomSequence random(RandomStream{.seed = 31});
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    const std::int64_t documents = 1 + static_cast<std::int64_t>(random.below(trial % 2 == 0 ? 200 : 9000));
    std::vector<double> weights(1 + random.below(5));
    for (double& weight : weights) weight = random.uniform();
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(documents));
    for (auto& size : sizes) size = static_cast<std::int64_t>(random.below(50));
    const double weight_sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (const bool by_size : {false, true}) {
      const SizeOfDocument size_of = [&](std::int64_t document) { return sizes[static_cast<std::size_t>(document)]; };
      const Parts parts = choose_parts(documents, weights, trial, by_size ? size_of : SizeOfDocument{});
      ASSERT_EQ(std::ssize(parts), documents);
      std::vector<double> sums(weights.size());
      double total = 0;
      for (std::size_t document = 0; document < parts.size(); ++document) {
        const double size = by_size ? static_cast<double>(sizes[document]) : 1;
        sums.at(parts[document]) += size;
        total += size;
      }
      // Half a document at each of two ends; a document has 49 at most.
      for (std::size_t part = 0; part < weights.size(); ++part) {
        EXPECT_LE(std::abs(sums[part] - total * weights[part] / weight_sum), by_size ? 49 : 1 + 1e-6);
      }
      EXPECT_EQ(parts, choose_parts(documents, weights, trial, by_size ? size_of : SizeOfDocument{}));
      if (documents > 100 && weights.size() == 2 && std::min(weights[0], weights[1]) > 0.2) {
        EXPECT_NE(parts, choose_parts(documents, weights, trial + 1000));
      }
    }
  }
}

TEST(DocumentChoice, SmallerSamplesAreInLargerOnes) {
  RandomSequence random(RandomStream{.seed = 32});
  for (std::uint64_t trial = 0; trial < 30; ++trial) {
    const std::int64_t documents = 2 + static_cast<std::int64_t>(random.below(6000));
    const SizeOfDocument size_of = [](std::int64_t document) { return document * 7 % 11; };
    std::int64_t all = 0;
    for (std::int64_t i = 0; i < documents; ++i) all += size_of(i);
    const auto wanted = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(all) + 1));
    const Parts sample = choose_sample(documents, wanted, trial, size_of);
    const auto size_in = [&](const Parts& parts) {
      std::int64_t sum = 0;
      for (std::int64_t i = 0; i < documents; ++i) sum += parts[static_cast<std::size_t>(i)] == 0 ? size_of(i) : 0;
      return sum;
    };
    EXPECT_GE(size_in(sample), wanted);
    EXPECT_LT(size_in(sample), wanted + 11);
    const Parts smaller = choose_sample(documents, wanted / 2, trial, size_of);
    for (std::size_t i = 0; i < sample.size(); ++i) EXPECT_TRUE(smaller[i] != 0 || sample[i] == 0);
    EXPECT_EQ(std::ranges::count(choose_sample(documents, documents / 3, trial), 0), documents / 3);
    EXPECT_EQ(std::ranges::count(choose_sample(documents, documents, trial), 0), documents);
  }
}

// Chi-square over all sets of three of six documents: 19 degrees of freedom; above 50 in 1.3e-4 of the cases.
TEST(DocumentChoice, EverySampleIsEquallyLikely) {
  std::map<Parts, int> seen;
  constexpr int kSeeds = 10'000;
  for (int seed = 0; seed < kSeeds; ++seed) ++seen[choose_sample(6, 3, static_cast<std::uint64_t>(seed))];
  ASSERT_EQ(seen.size(), 20);
  double chi_square = 0;
  for (const auto& [sample, times] : seen) chi_square += std::pow(times - kSeeds / 20.0, 2) / (kSeeds / 20.0);
  EXPECT_LT(chi_square, 50);
}

// Of many documents, whose order is enciphered and not shuffled: how often each is drawn over the seeds, and how often
// neighbours are drawn together. Five standard deviations.
TEST(DocumentChoice, NoDocumentOfManyIsLikelierThanAnother) {
  constexpr std::int64_t kDocuments = 5000, kWanted = 1000;
  constexpr int kSeeds = 300;
  std::vector<double> drawn(kDocuments);
  double neighbours = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Parts sample = choose_sample(kDocuments, kWanted, static_cast<std::uint64_t>(seed));
    for (std::size_t i = 0; i < sample.size(); ++i) {
      drawn[i] += sample[i] == 0 ? 1 : 0;
      neighbours += i > 0 && sample[i] == 0 && sample[i - 1] == 0 ? 1 : 0;
    }
  }
  const double p = static_cast<double>(kWanted) / kDocuments, mean = kSeeds * p;
  double chi_square = 0;
  for (const double times : drawn) chi_square += std::pow(times - mean, 2) / (mean * (1 - p));
  EXPECT_NEAR(chi_square, kDocuments, 5 * std::sqrt(2.0 * kDocuments));
  const double pairs = kSeeds * (kDocuments - 1) * p * (kWanted - 1) / (kDocuments - 1);
  EXPECT_NEAR(neighbours, pairs, 5 * std::sqrt(pairs));  // their variance is below that of a Poisson variable
}

}  // namespace
}  // namespace teratron::testing
