// Which documents train and eval loss hold out, as the command line and the checkpoint say.

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

class SplitCommands : public TrainingCommands<1000> {
 protected:
  SplitCommands() {
    write_file_atomically(path("corpus.jsonl"), random_documents(60, 40, 40));
    succeed({"data", "tokenize", "--tokenizer", path("tokenizer"), "--out", path("documents"), path("corpus.jsonl")});
  }

  Outcome train(const std::string& iterations, const Words& more) const {
    const Words size = {"--num-layers", "1", "--hidden-size", "8", "--seq-length", "8", "--split", "5,1"};
    const Words run = {"--data-path", path("documents"), "--save", path("run"), "--train-iters", iterations};
    return run_teratron(training_.command(with(with(size, run), more)));
  }

  // What eval loss says of the run.
  std::string evaluate(const Words& more) const {
    return succeed(
        with({"eval", "loss", "--load", path("run"), "--data-path", path("documents"), "--split", "5,1"}, more));
  }
};

TEST_F(SplitCommands, TrainSaysItsSplitAndSavesTheFlagsAsGiven) {
  Outcome outcome = train("2", {});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, ::testing::ContainsRegex("split by --split-order random --split-seed 1: training [0-9]+ "
                                                       "documents, validation [0-9]+ documents"));
  EXPECT_THAT(read_file(path("run/config.toml")),
              AllOf(HasSubstr("\nsplit_order = \"auto\"\n"), HasSubstr("\nsplit_seed = 0\n")));
  std::filesystem::remove_all(path("run"));
  outcome = train("2", {"--split-order", "file"});
  EXPECT_THAT(outcome.errors, HasSubstr("split by --split-order file: training 50 documents, validation 10 documents"));
  EXPECT_THAT(read_file(path("run/config.toml")), HasSubstr("\nsplit_order = \"file\"\n"));
}

TEST_F(SplitCommands, TrainSaysWhereItValidatesOnNothing) {
  const std::string what = "validates on nothing: --split leaves nothing for it";
  EXPECT_THAT(train("1", {"--eval-interval", "1"}).errors, Not(HasSubstr(what)));
  const Words whole = {"--data-path", path("documents"), "--train-iters", "1", "--eval-interval", "1", "--split", "1"};
  EXPECT_THAT(run_teratron(training_.command(whole)).errors, HasSubstr(what));
}

TEST_F(SplitCommands, EvalLossHoldsOutWhatTheTrainingHeldOut) {
  for (const auto& flags :
       std::vector<Words>{{"--split-order", "file"}, {"--split-order", "random", "--split-seed", "7"}}) {
    std::filesystem::remove_all(path("run"));
    ASSERT_EQ(train("2", flags).exit_code, 0);
    const std::string by_checkpoint = evaluate({});
    EXPECT_EQ(by_checkpoint, evaluate(flags));
    EXPECT_NE(by_checkpoint, evaluate({"--split-seed", "8"}));
    EXPECT_THAT(by_checkpoint, HasSubstr(flags.back()));
  }
}

TEST_F(SplitCommands, ARunGoesOnWithoutFlagsAndByItsOwnConfigurationButNotWithAnotherSplit) {
  ASSERT_EQ(train("2", {"--split-seed", "7"}).exit_code, 0);
  const Outcome refused = train("4", {"--load", path("run"), "--split-order", "file"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, AllOf(StartsWith("error: "), HasSubstr("--split-order random --split-seed 7"),
                                    HasSubstr("now --split-order file is given"), HasSubstr("Leave out")));
  EXPECT_EQ(refused.errors.find("error: ", 1), std::string::npos) << refused.errors;
  for (const std::string iterations : {"4", "6"}) {
    const Outcome resumed = train(iterations, {"--load", path("run"), "--config", path("run/config.toml")});
    EXPECT_EQ(resumed.exit_code, 0) << resumed.errors;
    EXPECT_THAT(resumed.errors, HasSubstr("split by --split-order random --split-seed 7"));
  }
  const Outcome resumed = train("8", {"--load", path("run")});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_THAT(resumed.errors, HasSubstr("split by --split-order random --split-seed 7"));
}

}  // namespace
}  // namespace teratron::testing
