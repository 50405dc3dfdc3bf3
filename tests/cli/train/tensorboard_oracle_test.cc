// TensorBoard's own reader reads what a run writes, across a resumption. Needs the environment of scripts/oracle-env;
// skips where that was not made, or was made before tensorboard was in it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;

fs::path oracle_environment() {
  const char* environment = std::getenv("TERATRON_ORACLE_ENV");
  return environment != nullptr ? environment : "/var/tmp/teratron-oracle";
}

TEST(TensorBoardOracle, FindsWhatMetricsSay) {
  const std::string python = (oracle_environment() / "bin" / "python").string();
  if (std::system(("'" + python + "' -c 'import tensorboard' > /dev/null 2>&1").c_str()) != 0) {
    GTEST_SKIP() << python << " has no tensorboard; scripts/oracle-env makes an environment with it";
  }
  const TinyTraining training;
  const std::string run = training.path("run"), records = training.path("tb"), log = training.path("log");
  const auto train = [&](const char* iterations, const Words& more) {
    const auto outcome = run_teratron(training.command(with(
        {"--train-iters", iterations, "--eval-interval", "2", "--save", run, "--tensorboard-dir", records}, more)));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  };
  train("3", {});
  train("6", {"--load", run});
  const std::string script = std::string(TERATRON_SOURCE_DIR) + "/tests/oracle/tensorboard_reads_ours.py";
  const std::string command =
      "'" + python + "' '" + script + "' '" + records + "' '" + run + "/metrics.jsonl' > '" + log + "' 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_file(log);
}

}  // namespace
}  // namespace teratron::testing
