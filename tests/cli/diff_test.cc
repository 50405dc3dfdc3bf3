// Two runs that part: in which update, in which tensors.

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

class Diff : public TrainingCommands<1000> {
 protected:
  std::string train(const std::string& name, const std::string& iterations, const Words& more = {}) const {
    succeed(training_.command(
        with({"--num-layers", "1", "--hidden-size", "8", "--num-attention-heads", "2", "--seq-length", "8", "--save",
              path(name), "--train-iters", iterations, "--save-interval", "2", "--lr-decay-style", "constant"},
             more)));
    return path(name);
  }
};

TEST_F(Diff, RunsOfOneSeedAreEqualAndOneThatWentOnOtherwisePartsAfterTheSharedUpdates) {
  const std::string a = train("a", "6"), b = train("b", "2");
  EXPECT_THAT(succeed({"diff", a, b}), AllOf(HasSubstr("updates 1 to 2 are equal"), HasSubstr("0 of ")));
  train("b", "6", {"--load", b, "--lr", "0.004", "--override-opt-param-scheduler"});
  const Outcome outcome = run_teratron({"diff", a, b, "--json", "-"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors,
              AllOf(HasSubstr("checkpoints of update 2 are equal"), HasSubstr("checkpoints of update 4: "),
                    HasSubstr("embedding.tokens.weight"), HasSubstr("' differ")));
  const Json report = Json::parse(outcome.output);
  EXPECT_FALSE(report.at("equal").get<bool>());
  EXPECT_EQ(report.at("log").at("parts_at").at("iteration"), 3);
  EXPECT_EQ(report.at("log").at("parts_at").at("metric"), "learning_rate");
  EXPECT_EQ(report.at("equal_checkpoints"), Json({2}));
  EXPECT_EQ(report.at("checkpoint"), 4);
  EXPECT_FALSE(report.at("tensors").at("differ").empty());
  // Nothing differs by more than its own size.
  EXPECT_THAT(succeed({"diff", a, b, "--tolerance", "10"}), HasSubstr("checkpoints of update 2, 4 are equal"));
}

TEST_F(Diff, ACheckpointIsEqualToTheHuggingFaceFolderThatItBecame) {
  const std::string run = train("run", "2");
  succeed({"convert", "--from", "teratron", "--to", "hf", run, path("hf")});
  const Json report = json_of({"diff", run, path("hf")});
  EXPECT_TRUE(report.at("equal").get<bool>());
  EXPECT_FALSE(report.contains("log"));
}

TEST_F(Diff, WrongInputIsOneError) {
  const std::string run = train("run", "2");
  EXPECT_THAT(refused({"diff", run, path("none")}), HasSubstr("there is no '"));
  EXPECT_THAT(refused({"diff", run, training_.path("corpus.txt")}), HasSubstr("not a sound safetensors file"));
  EXPECT_THAT(refused({"diff", run, run, "--tolerance", "-1"}), HasSubstr("--tolerance must be at least 0"));
  EXPECT_THAT(refused({"diff", run}), HasSubstr("B"));
  const std::string later = train("later", "3");
  std::filesystem::remove_all(later + "/iter_0000002");
  std::filesystem::remove(later + "/metrics.jsonl");
  EXPECT_THAT(refused({"diff", run, later}), HasSubstr("no update and no checkpoint in common"));
}

}  // namespace
}  // namespace teratron::testing
