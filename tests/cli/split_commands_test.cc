// Which documents train and eval loss hold out, as the command line and the checkpoint say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/philox.h"
#include "cli/binary.h"

namespace teratron {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::run_teratron;
using ::testing::StartsWith;

class SplitCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    RandomSequence random(RandomStream{.seed = 3});
    std::string text, lines;
    for (int document = 0; document < 60; ++document) {
      std::string words;
      for (int i = 0; i < 40; ++i) words += static_cast<char>('a' + random.below(6));
      text += words;
      lines += "{\"text\": \"" + words + "\"}\n";
    }
    write_file_atomically(path("corpus.txt"), text);
    write_file_atomically(path("corpus.jsonl"), lines);
    succeed({"tokenizer", "train", "--vocab-size", "270", "--out", path("tokenizer"), path("corpus.txt")});
    succeed({"data", "tokenize", "--tokenizer", path("tokenizer"), "--out", path("data"), path("corpus.jsonl")});
  }

  Outcome train(const std::string& iterations, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"train", "--data-path", path("data"), "--tokenizer", path("tokenizer")};
    arguments.insert(arguments.end(), {"--num-layers", "1", "--hidden-size", "8", "--num-attention-heads", "2"});
    arguments.insert(arguments.end(), {"--seq-length", "8", "--micro-batch-size", "2", "--split", "5,1"});
    arguments.insert(arguments.end(), {"--save", path("run"), "--train-iters", iterations});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_teratron(arguments);
  }

  // What eval loss says of the run.
  std::string evaluate(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"eval", "loss", "--load", path("run"), "--data-path", path("data")};
    arguments.insert(arguments.end(), {"--split", "5,1"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return succeed(arguments);
  }

  static std::string succeed(const std::vector<std::string>& arguments) {
    const Outcome outcome = run_teratron(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return outcome.output;
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  testing::TemporaryFolder folder_;
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

TEST_F(SplitCommands, EvalLossHoldsOutWhatTheTrainingHeldOut) {
  for (const auto& flags : std::vector<std::vector<std::string>>{{"--split-order", "file"},
                                                                 {"--split-order", "random", "--split-seed", "7"}}) {
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
}  // namespace teratron
