// Pre-norm layers norm their output for one another, and mask their gradients for one another: one pass over memory
// less for each. That the results are the same is for the tests of layouts.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "executor/executor.h"
#include "model/make_model.h"
#include "model/random_batch.h"
#include "model/train_in_layout.h"

namespace teratron::testing {
namespace {

struct CallCounter final : CallObserver {
  std::map<std::string, std::int64_t, std::less<>> calls;
  void begin(std::string_view operation) override { ++calls[std::string(operation)]; }
  void end(std::string_view) override {}
};

TEST(NormChain, LeavesTheFirstLayersAndTheFinalNormToThemselves) {
  const ModelConfig config = small_config();
  const auto backend = make_cpu_backend();
  const auto model = make_model(config, {});
  const RandomBatch batch(2, 5, config.vocab_size, 1);
  Executor executor(*backend, *model, {.batch = 2, .tokens = 5});
  executor.allocate();
  executor.initialize(1);
  CallCounter counter;
  backend->set_observer(&counter);
  executor.evaluate(batch.whole());
  EXPECT_EQ(counter.calls["norm_forward"], 2);
  EXPECT_EQ(counter.calls["residual_add"], 1);
  EXPECT_EQ(counter.calls["residual_add_norm"], 2 * config.num_layers - 1);
}

constexpr int kOfEmbedding = 2;  // masks of its sum, forward, and of the gradient

// Calls of a step with one micro-batch.
CallCounter calls_of(const Study& study, const Layout& layout) {
  CallCounter counter;
  train(study, layout, [&] {
    auto backend = make_cpu_backend();
    backend->set_observer(&counter);
    return backend;
  });
  return counter;
}

Study study_of(double hidden_dropout, std::int64_t layers = 3) {
  Study study{.config = small_config(), .batch = 2, .steps = 1};
  study.config.num_layers = layers;
  study.config.hidden_dropout = hidden_dropout;
  return study;
}

TEST(NormChain, MasksAllGradientsButThatOfTheLastLayersOutput) {
  CallCounter counter = calls_of(study_of(0.1), {.micro_batch = 2});
  EXPECT_EQ(counter.calls["residual_add_norm_backward"], 2 * 3 - 1);
  EXPECT_EQ(counter.calls["norm_backward"], 2) << "the first layer's and the final norm";
  EXPECT_EQ(counter.calls["dropout_backward"], 1 + kOfEmbedding);
}

TEST(NormChain, LeavesALayerThatIsMadeAgainOrWhoseWeightsComeLaterToItself) {
  for (const bool deferred : {false, true}) {
    CallCounter counter = calls_of(study_of(0.1), {.micro_batch = 2,
                                                   .recompute = deferred ? Recompute::kNone : Recompute::kFull,
                                                   .defer_weight_gradients = deferred});
    EXPECT_EQ(counter.calls["residual_add_norm_backward"], 3);
    EXPECT_EQ(counter.calls["norm_backward"], 4);
    EXPECT_EQ(counter.calls["dropout_backward"], 3 + kOfEmbedding);
  }
}

TEST(NormChain, MasksNothingWithoutDropout) {
  CallCounter counter = calls_of(study_of(0), {.micro_batch = 2});
  EXPECT_EQ(counter.calls["residual_add_norm_backward"], 0);
  EXPECT_EQ(counter.calls["dropout_backward"], 0);
  EXPECT_EQ(counter.calls["norm_backward"], 7);
}

}  // namespace
}  // namespace teratron::testing
