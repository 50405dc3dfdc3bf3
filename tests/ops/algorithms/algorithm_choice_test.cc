// The algorithm of a product: the kept one where it can be used, else the fastest that runs, timed once.
#include "ops/algorithms/algorithm_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Times = std::vector<std::optional<double>>;

AlgorithmBytes bytes(int number) {
  AlgorithmBytes made{};
  made[3] = static_cast<std::byte>(number);
  return made;
}

int number_of(const AlgorithmBytes& algorithm) { return static_cast<int>(algorithm[3]); }

// A device whose algorithm number i takes times[i], one after another where there are several.
class FakeTrial final : public AlgorithmTrial {
 public:
  explicit FakeTrial(std::vector<Times> times) : times_(std::move(times)) {}

  std::vector<AlgorithmBytes> candidates() override {
    ++asked;
    std::vector<AlgorithmBytes> all;
    for (std::size_t i = 0; i < times_.size(); ++i) all.push_back(bytes(static_cast<int>(i)));
    return all;
  }
  bool can_use(const AlgorithmBytes& algorithm) override { return number_of(algorithm) != unusable; }
  std::optional<double> time(const AlgorithmBytes& algorithm) override {
    const Times& own = times_.at(static_cast<std::size_t>(number_of(algorithm)));
    return own[static_cast<std::size_t>(timed[number_of(algorithm)]++) % own.size()];
  }

  int asked = 0, unusable = -1;
  std::map<int, int> timed;  // how often

 private:
  std::vector<Times> times_;
};

class AlgorithmChoice : public ::testing::Test {
 protected:
  int choose(FakeTrial& trial) { return number_of(choose_algorithm("a product", trial, cache_)); }
  AlgorithmCache cache_{"", "a card"};

  // The cache in memory warns that it is not kept.
  AlgorithmChoice() { ::testing::internal::CaptureStderr(); }
  ~AlgorithmChoice() override { ::testing::internal::GetCapturedStderr(); }
};

TEST(Fastest, IsTheLeastTimeOfThoseThatRan) {
  EXPECT_EQ(fastest(Times{3, 2, 5}), 1U);
  EXPECT_EQ(fastest(Times{std::nullopt, 7, std::nullopt, 6}), 3U);
  EXPECT_EQ(fastest(Times{4}), 0U);
  EXPECT_EQ(fastest(Times{std::nullopt}), std::nullopt);
  EXPECT_EQ(fastest(Times{}), std::nullopt);
}

TEST(Fastest, IsTheLibrarysFirstAmongThoseThatNoiseAloneTellsApart) {
  EXPECT_EQ(fastest(Times{100.9, 100, 120}), 0U);
  EXPECT_EQ(fastest(Times{101.1, 100.5, 100}), 1U);
}

TEST_F(AlgorithmChoice, TimesTheCandidatesOnceAndKeepsTheLeastOfTheirTimes) {
  // The second is disturbed most of the time.
  FakeTrial trial({{9}, {30, 30, 5}, {7}});
  EXPECT_EQ(choose(trial), 1);
  EXPECT_EQ(cache_.find("a product")->microseconds, 5);
  const std::map<int, int> timed = trial.timed;
  EXPECT_EQ(choose(trial), 1);
  EXPECT_EQ(trial.timed, timed);
  EXPECT_EQ(trial.asked, 1);
}

TEST_F(AlgorithmChoice, LeavesOutThoseThatFailEvenIfOnlyOnce) {
  FakeTrial trial({{std::nullopt}, {8}, {1, std::nullopt, 1}, {9}});
  EXPECT_EQ(choose(trial), 1);
  EXPECT_EQ(trial.timed[0], 1) << "what has failed is not tried again";
}

// There may have been no memory to time the others in.
TEST_F(AlgorithmChoice, NeitherTimesNorKeepsASingleAlgorithm) {
  FakeTrial trial({{std::nullopt}});
  EXPECT_EQ(choose(trial), 0);
  EXPECT_TRUE(trial.timed.empty());
  EXPECT_FALSE(cache_.find("a product"));
}

TEST_F(AlgorithmChoice, WhereNoneRunsIsAnErrorThatNamesTheProduct) {
  FakeTrial trial({{std::nullopt}, {std::nullopt}});
  EXPECT_THAT([&] { choose(trial); }, ThrowsMessage<EnvironmentError>(HasSubstr("a product")));
  EXPECT_FALSE(cache_.find("a product"));
}

TEST_F(AlgorithmChoice, IsMadeAnewWhereTheKeptOneCannotBeUsed) {
  cache_.settle("a product", {bytes(2), 1});
  FakeTrial trial({{9}, {3}});
  trial.unusable = 2;
  EXPECT_EQ(choose(trial), 1);
  EXPECT_EQ(number_of(cache_.find("a product")->bytes), 1);
}

// Another rank settles while this one measures.
class OvertakenTrial final : public AlgorithmTrial {
 public:
  OvertakenTrial(AlgorithmCache& cache, bool usable) : cache_(cache), usable_(usable) {}
  std::vector<AlgorithmBytes> candidates() override {
    cache_.settle("a product", {bytes(7), 1});
    return {bytes(0), bytes(1)};
  }
  bool can_use(const AlgorithmBytes&) override { return usable_; }
  std::optional<double> time(const AlgorithmBytes& algorithm) override { return 5 - number_of(algorithm); }

 private:
  AlgorithmCache& cache_;
  bool usable_;
};

TEST_F(AlgorithmChoice, IsTheOneOfTheRankThatWasFirst) {
  OvertakenTrial overtaken(cache_, true);
  EXPECT_EQ(number_of(choose_algorithm("a product", overtaken, cache_)), 7);
}

TEST_F(AlgorithmChoice, IsMadeAnewWhereAnotherRanksCannotBeUsed) {
  OvertakenTrial overtaken(cache_, false);
  EXPECT_EQ(number_of(choose_algorithm("a product", overtaken, cache_)), 1);
}

}  // namespace
}  // namespace teratron::testing
