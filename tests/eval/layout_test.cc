// Evaluation and generation do not depend on how the model and the windows are shared out.
#include <gtest/gtest.h>

#include <set>

#include "comm/launch.h"
#include "eval/generation/generation.h"
#include "eval/windows.h"
#include "model/random_batch.h"

namespace teratron::testing {
namespace {

ModelConfig config_of_layouts() {
  ModelConfig config = small_config();
  config.hidden_size = 32;
  config.num_attention_heads = 4;
  return config;
}

// Results of `body` on each rank.
template <class Result>
std::vector<Result> on_ranks(const MeshShape& shape, const ExecutorOptions& options,
                             const std::function<Result(LanguageModel&)>& body) {
  std::vector<Result> results(static_cast<std::size_t>(shape.ranks()));
  run_ranks({}, shape.ranks(), [&](Communicator& world) {
    const auto backend = make_cpu_backend();
    LanguageModel runner(*backend, config_of_layouts(), options, std::make_shared<Mesh>(make_mesh(world, shape)));
    runner.allocate();
    runner.initialize(5);
    results[static_cast<std::size_t>(world.rank())] = body(runner);
  });
  return results;
}

const std::vector<MeshShape> kLayouts = {{.tensor = 2},
                                         {.tensor = 4},
                                         {.data = 2},
                                         {.data = 5},
                                         {.tensor = 2, .data = 3},
                                         {.pipeline = 2},
                                         {.tensor = 2, .pipeline = 2, .data = 2}};

TEST(EvaluationLayout, EveryRankGetsTheSumOfOneRank) {
  const RandomBatch text(1, 70, config_of_layouts().vocab_size, 1);
  for (const std::int64_t scored : {2, 9, 69}) {  // fewer windows than ranks, one, and many
    const auto windows = scoring_windows(scored, 9, 4);
    const auto score = [&](const MeshShape& shape) {
      return on_ranks<double>(
          shape, {.purpose = Purpose::kEvaluation, .batch = 3, .tokens = 9},
          [&](LanguageModel& runner) { return score_windows(runner, text.ids, windows, [](const ScoringState&) {}); });
    };
    const double alone = score({}).front();
    for (const MeshShape& shape : kLayouts) {
      const std::vector<double> sums = score(shape);
      EXPECT_NEAR(sums.front(), alone, 1e-5 * alone)
          << "tp " << shape.tensor << " pp " << shape.pipeline << " dp " << shape.data;
      EXPECT_EQ(std::set<double>(sums.begin(), sums.end()).size(), 1U) << "all ranks have the same bits";
    }
  }
}

TEST(EvaluationLayout, ObserversHearOfTheirShareAndTogetherOfEveryTarget) {
  const RandomBatch text(1, 70, config_of_layouts().vocab_size, 1);
  const auto windows = scoring_windows(69, 9, 4);
  const std::vector<std::int64_t> scored = on_ranks<std::int64_t>(
      {.data = 3}, {.purpose = Purpose::kEvaluation, .batch = 2, .tokens = 9}, [&](LanguageModel& runner) {
        ScoringState last;
        score_windows(runner, text.ids, windows, [&](const ScoringState& state) { last = state; });
        EXPECT_EQ(last.scored, last.targets);
        return last.scored;
      });
  EXPECT_EQ(scored[0] + scored[1] + scored[2], 69);
}

// Drawn tokens too: every rank draws with the same seed from the same logits, whatever rounding made of them.
TEST(GenerationLayout, EveryRankMakesTheTokensOfOneRank) {
  const std::vector<std::int32_t> prompt = {3, 1, 4, 1, 5};
  for (const double temperature : {0.0, 0.7}) {
    const auto make = [&](const MeshShape& shape) {
      return on_ranks<std::vector<std::int32_t>>(
          shape, {.purpose = Purpose::kGeneration, .tokens = 3, .logits_chunk = 1}, [&](LanguageModel& runner) {
            std::vector<std::int32_t> made;
            generate(runner, prompt, {.sampling = {.temperature = temperature}, .max_new_tokens = 30},
                     [&](std::int32_t token) { made.push_back(token); });
            return made;
          });
    };
    const std::vector<std::int32_t> alone = make({}).front();
    for (const MeshShape& shape : {MeshShape{.tensor = 2}, MeshShape{.tensor = 4}, MeshShape{.pipeline = 2},
                                   MeshShape{.tensor = 2, .pipeline = 2}}) {
      for (const std::vector<std::int32_t>& made : make(shape)) {
        EXPECT_EQ(made, alone) << "tp " << shape.tensor << " pp " << shape.pipeline;
      }
    }
  }
}

}  // namespace
}  // namespace teratron::testing
