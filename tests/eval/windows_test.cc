#include "eval/windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "model/random_batch.h"

namespace teratron::testing {
namespace {

TEST(Windows, ScoreEveryTargetExactlyOnceWithMostContext) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 500; ++trial) {
    const std::int64_t targets = random() % 300, length = 1 + random() % 40,
                       stride = 1 + random() % static_cast<unsigned>(length);
    std::vector<int> scored(static_cast<std::size_t>(targets));
    for (const ScoringWindow& window : scoring_windows(targets, length, stride)) {
      EXPECT_EQ(window.begin % stride, 0);
      EXPECT_LE(window.length, length);
      EXPECT_LT(window.first_scored, window.length);
      EXPECT_TRUE(window.begin == 0 ? window.first_scored == 0 : window.first_scored == length - stride);
      for (std::int64_t i = window.first_scored; i < window.length; ++i)
        ++scored[static_cast<std::size_t>(window.begin + i)];
    }
    EXPECT_EQ(std::count(scored.begin(), scored.end(), 1), targets);
  }
}

TEST(Windows, BatchOfWindowsChangesNothing) {
  const auto backend = make_reference_backend(DType::kF64);
  const ModelConfig config = small_config();
  const RandomBatch text(1, 60, config.vocab_size, 1);
  const auto windows = scoring_windows(59, 9, 4);
  const auto score = [&](std::int64_t batch) {
    LanguageModel runner(*backend, config, {.purpose = Purpose::kEvaluation, .batch = batch, .tokens = 9});
    runner.allocate();
    runner.initialize(5);
    return score_windows(runner, text.ids, windows, [](const ScoringState&) {});
  };
  const double one_by_one = score(1);
  EXPECT_GT(one_by_one, 0);
  EXPECT_DOUBLE_EQ(score(4), one_by_one);
}

}  // namespace
}  // namespace teratron::testing
