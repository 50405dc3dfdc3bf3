// Candidate cuts: each is a cut of the sequence on the grid, within its limits, and there only once.
#include "slicing/candidate_cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace teratron::testing {
namespace {

using namespace slicing;
using Lengths = std::vector<std::int64_t>;

constexpr std::int64_t kTokens = 1000, kGrid = 16;

// Slices with a fixed cost, a cost by the token, and one for every token attended to.
CostTable some_costs() {
  return {kTokens, kGrid, [](std::int64_t length, std::int64_t context) {
            const auto l = static_cast<double>(length);
            return 1 + 0.1 * l + 1e-4 * l * (static_cast<double>(context) + l / 2);
          }};
}

// Every boundary but the end is a multiple of the grid.
void expect_cut(const Lengths& lengths) {
  std::int64_t token = 0;
  for (const std::int64_t length : lengths) {
    EXPECT_GT(length, 0);
    token += length;
    EXPECT_TRUE(token % kGrid == 0 || token == kTokens) << token;
  }
  EXPECT_EQ(token, kTokens);
}

TEST(CandidateCuts, OfAlgorithm1AreThereOnceHoweverFewStagesThereAre) {
  const CostTable costs = some_costs();
  for (const int further : {0, 1, 2, 3, 4, 7}) {
    const std::vector<Lengths> cuts = algorithm_1_cuts(costs, {.further = further, .micro_batches = 2});
    ASSERT_FALSE(cuts.empty());
    EXPECT_EQ(std::set<Lengths>(cuts.begin(), cuts.end()).size(), cuts.size()) << further << " further stages";
    for (const Lengths& cut : cuts) expect_cut(cut);
  }
}

TEST(CandidateCuts, HaveSeveralSlicesWithinTheirLimitsAndAreThereOnce) {
  const CostTable costs = some_costs();
  for (const std::size_t most : {2U, 5U, 64U}) {
    for (const std::int64_t fewest : {1, 100, 600}) {
      const CutLimits limits{.fewest_tokens = fewest, .most_slices = most, .further = 3, .micro_batches = 4};
      const std::vector<Lengths> cuts = candidate_cuts(costs, limits);
      EXPECT_EQ(std::set<Lengths>(cuts.begin(), cuts.end()).size(), cuts.size());
      for (const Lengths& cut : cuts) {
        expect_cut(cut);
        EXPECT_GT(cut.size(), 1U);
        EXPECT_LE(cut.size(), most);
      }
    }
  }
}

TEST(CandidateCuts, HaveTwoSlicesOfEqualWorkToAStepOfTheGrid) {
  const CostTable costs = some_costs();
  const std::size_t end = costs.intervals();
  const auto is_even = [&](const Lengths& cut) {
    const auto middle = static_cast<std::size_t>(cut.front() / kGrid);
    const double step = costs.of(0, middle + 1) - costs.of(0, middle);
    return std::abs(costs.of(0, middle) - costs.of(middle, end)) <= step;
  };
  const std::vector<Lengths> cuts = candidate_cuts(costs, {.most_slices = 2, .further = 1});
  EXPECT_TRUE(std::ranges::any_of(cuts, is_even));
}

}  // namespace
}  // namespace teratron::testing
