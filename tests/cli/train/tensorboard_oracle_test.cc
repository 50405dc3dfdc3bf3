// TensorBoard's own reader reads what a run writes, across a resumption. Needs the environment of scripts/oracle-env;
// skips where that was not made, or was made before tensorboard was in it.

#include "cli/tiny_training.h"
#include "oracle/python.h"

namespace teratron::testing {
namespace {

TEST(TensorBoardOracle, FindsWhatMetricsSay) {
  if (!oracle_has("tensorboard")) {
    GTEST_SKIP() << oracle_environment() << " has no tensorboard; scripts/oracle-env makes an environment with it";
  }
  const TinyTraining training;
  const std::string run = training.path("run"), records = training.path("tb"), log = training.path("log");
  const auto train = [&](const char* iterations, const Words& more) {
    must(training.command(with(
        {"--train-iters", iterations, "--eval-interval", "2", "--save", run, "--tensorboard-dir", records}, more)));
  };
  train("3", {});
  train("6", {"--load", run});
  EXPECT_EQ(run_oracle("tensorboard_reads_ours.py", {records, run + "/metrics.jsonl"}, log), 0) << read_file(log);
}

}  // namespace
}  // namespace teratron::testing
