// Training with ranks that are processes of mpirun: the bits of ranks that are threads, and one clear error on every
// rank when something is wrong with one of them. By address only GPUs train.

#include "cli/tiny_training.h"
#include "comm/process/launched_job.h"

namespace teratron::testing {
namespace {

using std::chrono::seconds;

Words with_binary(const Words& words) { return with({TERATRON_BINARY}, words); }

class ProcessTrain : public ::testing::TestWithParam<LaunchedBy> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }

  const TinyTraining training_;
};

// One process alone has it.
TEST_P(ProcessTrain, StandardInputIsNoInputOfAllProcesses) {
  for (const auto& [words, flag] : std::vector<std::pair<Words, std::string>>{
           {{"generate", "--load", "run", "--prompts", "-", "--tp", "2"}, "--prompts -"},
           {{"eval", "wikitext103", "--load", "run", "--data", "-", "--tp", "2"}, "--data -"}}) {
    const JobOutcome outcome = launch(GetParam(), 2, with_binary(words))->wait(seconds(30));
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_THAT(outcome.errors, HasSubstr(flag + " cannot be read by 2 processes"));
  }
}

TEST_P(ProcessTrain, GivesTheLossesOfThreadRanksBitForBit) {
  struct Layout {
    int ranks;
    Words flags;
  };
  for (const Layout& layout : {Layout{2, {"--tp", "2", "--global-batch-size", "4"}},
                               Layout{4, {"--tp", "2", "--dp", "2", "--global-batch-size", "8"}}}) {
    const auto run = [&](const std::string& name, bool are_processes) {
      const Words words =
          training_.command(with(layout.flags, {"--train-iters", "20", "--save", training_.path(name), "--json", "-"}));
      const Outcome outcome = are_processes ? launch(GetParam(), layout.ranks, with_binary(words))->wait(seconds(300))
                                            : run_teratron(words);
      EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
      EXPECT_THAT(outcome.errors,
                  HasSubstr(are_processes ? "as processes of " + name_of(GetParam()) : "as threads of one process"));
      return TinyTraining::losses(training_.path(name));
    };
    const std::string name = std::to_string(layout.ranks);
    const std::vector<double> threads = run("threads" + name, false), processes = run("processes" + name, true);
    EXPECT_EQ(threads.size(), 20U);
    EXPECT_EQ(threads, processes);
  }
}

TEST_P(ProcessTrain, GivesTheLossesOfThreadRanksBetweenHosts) {
  const auto words = [&](const std::string& name) {
    return training_.command({"--tp", "2", "--train-iters", "8", "--save", training_.path(name)});
  };
  const JobOutcome outcome = run_on_several_hosts(GetParam(), 2, with_binary(words("hosts")), seconds(120));
  if (outcome.exit_code == kNoSeveralHosts) GTEST_SKIP() << outcome.errors;
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  ASSERT_EQ(run_teratron(words("threads")).exit_code, 0);
  EXPECT_EQ(TinyTraining::losses(training_.path("hosts")), TinyTraining::losses(training_.path("threads")));
}

TEST_P(ProcessTrain, RanksWithDifferentConfigurationsHearWhatDiffers) {
  const Words words = with_binary(training_.command({"--tp", "2", "--train-iters", "3"}));
  std::string quoted;  // one rank's command line has a word more
  for (const std::string& word : words) quoted += " '" + word + "'";
  const JobOutcome outcome =
      launch(GetParam(), 2, {"bash", "-c", "exec" + quoted + " --seed 1${" + rank_variable(GetParam()) + "}"})
          ->wait(seconds(60));
  EXPECT_EQ(outcome.exit_code, 2);
  for (int rank = 0; rank < 2; ++rank) {  // the slower one may hear it as the reason why the other has ended
    EXPECT_THAT(outcome.errors_of_rank[static_cast<std::size_t>(rank)],
                AllOf(StartsWith("error: "), HasSubstr("ranks 0 and 1 were given different configurations"),
                      HasSubstr("seed = 10"), HasSubstr("seed = 11")))
        << outcome.errors;
  }
}

TEST_P(ProcessTrain, AnotherNumberOfProcessesThanTheLayoutNeedsIsRefused) {
  const JobOutcome outcome =
      launch(GetParam(), 3, with_binary(training_.command({"--tp", "2", "--train-iters", "3"})))->wait(seconds(60));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("error: " + name_of(GetParam())),
                                    HasSubstr(" started 3 processes, but the layout needs 2 ranks")));
}

TEST_P(ProcessTrain, ARankWithoutItsFilesEndsTheJob) {
  const Words words = with_binary(training_.command({"--tp", "2", "--train-iters", "3"}));
  std::string quoted;
  for (const std::string& word : words) quoted += " '" + word + "'";
  const std::string is_second = "[ $" + rank_variable(GetParam()) + " = 1 ] && ";
  const JobOutcome outcome =
      launch(GetParam(), 2, {"bash", "-c", is_second + "exec" + quoted + " --data-path /no/such/corpus; exec" + quoted})
          ->wait(seconds(60));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors_of_rank[1], AllOf(HasSubstr("error: "), HasSubstr("/no/such/corpus"))) << outcome.errors;
}

INSTANTIATE_TEST_SUITE_P(Mpirun, ProcessTrain, ::testing::Values(LaunchedBy::kMpirun));

TEST(TrainByAddress, IsRefusedOnCpusWithHowToStartThem) {
  const TinyTraining training;
  const Words words = with_binary(training.command({"--tp", "2", "--train-iters", "3"}));
  const JobOutcome outcome = launch(LaunchedBy::kAddress, 2, words)->wait(seconds(60));
  EXPECT_EQ(outcome.exit_code, 2);
  for (const std::string& errors : outcome.errors_of_rank) {
    EXPECT_THAT(errors, AllOf(HasSubstr("error: the job at 127.0.0.1:"), HasSubstr("which is for GPUs"),
                              HasSubstr("mpirun -n 2 teratron"), HasSubstr("srun --mpi=pmix -n 2 teratron")));
  }
}

TEST(TrainByAddress, AWorldOfOneTrainsAlone) {
  const TinyTraining training;
  const JobOutcome outcome =
      launch(LaunchedBy::kAddress, 1, with_binary(training.command({"--train-iters", "3"})))->wait(seconds(60));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
}

}  // namespace
}  // namespace teratron::testing
