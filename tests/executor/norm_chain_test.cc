// Pre-norm layers norm their output for one another: one pass over memory less for each.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "executor/executor.h"
#include "model/make_model.h"
#include "model/random_batch.h"

namespace teratron {
namespace {

struct CallCounter final : CallObserver {
  std::map<std::string, std::int64_t, std::less<>> calls;
  void begin(std::string_view operation) override { ++calls[std::string(operation)]; }
  void end(std::string_view) override {}
};

TEST(NormChain, LeavesTheFirstLayersAndTheFinalNormToThemselves) {
  const ModelConfig config = test::small_config();
  const auto backend = make_cpu_backend();
  const auto model = make_model(config, {});
  const test::RandomBatch batch(2, 5, config.vocab_size, 1);
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

}  // namespace
}  // namespace teratron
