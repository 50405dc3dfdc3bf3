// Corpora as the command line names them: shards, blends and data of its own for validation.

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

using ::testing::ContainsRegex;

class DataPathCommands : public TrainingCommands<1000> {
 protected:
  // The same 60 documents as one corpus and as two shards of it.
  DataPathCommands() {
    const std::string all = random_documents(60, 40, 40);
    const std::size_t half = 25 * (all.size() / 60);
    tokenize("part-1", all.substr(0, half));
    tokenize("part-2", all.substr(half));
    tokenize("whole", all);
  }

  void tokenize(const std::string& name, const std::string& lines) const {
    write_file_atomically(path(name + ".jsonl"), lines);
    succeed({"data", "tokenize", "--tokenizer", path("tokenizer"), "--out", path(name), path(name + ".jsonl")});
  }

  Outcome train(const std::string& run, const Words& data, const Words& more) const {
    const Words size = {"--num-layers", "1", "--hidden-size", "8", "--seq-length", "8", "--save", path(run)};
    return run_teratron(training_.command(with(with(with({"--data-path"}, data), size), more)));
  }
};

TEST_F(DataPathCommands, ShardsAreTrainedOnEvaluatedAndShownAsOneCorpus) {
  const Words shards = {path("part-1"), path("part-2")};
  ASSERT_EQ(train("of-whole", {path("whole")}, {"--train-iters", "4"}).exit_code, 0);
  for (const Words& words : {shards, Words{path("part-?")}}) {
    std::filesystem::remove_all(path("of-shards"));
    const Outcome outcome = train("of-shards", words, {"--train-iters", "4"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(TinyTraining::losses(path("of-shards")), TinyTraining::losses(path("of-whole")));
    EXPECT_THAT(read_file(path("of-shards/config.toml")),
                HasSubstr("data_path = [\"" + shards[0] + "\", \"" + shards[1] + "\"]"));
  }
  const auto loss = [&](const Words& data) {
    const Words command = {"eval", "loss", "--load", path("of-whole"), "--json", "-", "--data-path"};
    return Json::parse(succeed(with(command, data))).at("loss");
  };
  EXPECT_EQ(loss(shards), loss({path("whole")}));
  const auto info = [](const Words& data) { return Json::parse(succeed(with({"data", "info", "--json", "-"}, data))); };
  EXPECT_EQ(info(shards).at("documents"), 60);
  EXPECT_EQ(info(shards).at("shards"), 2);
  EXPECT_EQ(info(shards).at("tokens"), info({path("whole")}).at("tokens"));
}

TEST_F(DataPathCommands, ABlendSaysItsSharesAndGoesOnByItsOwnConfiguration) {
  const Words blend = {"0.75", path("whole"), "0.25", path("data")};
  const Outcome outcome = train("run", blend, {"--train-iters", "4"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors,
              AllOf(HasSubstr("a blend of 2 corpora, each split by --split-order random --split-seed 1"),
                    ContainsRegex("whole' +75 %"), ContainsRegex("data' +25 %")));
  const Words resume = {"--load", path("run"), "--config", path("run/config.toml"), "--train-iters", "6"};
  const Outcome resumed = must(with({"train"}, resume));
  EXPECT_THAT(resumed.errors, ContainsRegex("whole' +75 %"));
}

TEST_F(DataPathCommands, ValidationReadsDataOfItsOwn) {
  const Words own = {"--valid-data-path", path("part-2"), "--train-iters", "2"};
  const Outcome outcome = train("run", {path("part-1")}, own);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("training 25 documents\nvalidation on all of '" + path("part-2") + "'"),
                                    HasSubstr("validation after iteration 2")));
}

TEST_F(DataPathCommands, EveryMistakeIsOneMessage) {
  const std::string a = path("whole"), b = path("data");
  const std::vector<std::pair<Words, std::string>> mistakes = {
      {{"0.7", a, b}, "in place of a weight"},
      {{a, "0.3", b}, "in place of a weight"},
      {{"0.7", a, "0.3"}, "the weight 0.3 without a corpus"},
      {{"0.7", a, "-1", b}, "it must be at least 0"},
      {{"0", a, "0", b}, "no weight above 0"},
      {{a, b, a}, "is named twice"},
      {{"1", a, "1", path("none")}, "no dataset at"},
      {{"1", a, "1", b, "--valid-data-path", b}, "is in both --data-path and --valid-data-path"},
      {{a, "--valid-data-path", b, "--split", "9,1"}, "--split 9,1 holds documents out"},
      {{a, "--valid-data-path", b, b}, "is named twice"},
  };
  for (const auto& [words, text] : mistakes) {
    const Outcome outcome = train("run", words, {"--train-iters", "2"});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.errors;
    EXPECT_THAT(outcome.errors, AllOf(StartsWith("error: "), HasSubstr(text)));
    EXPECT_EQ(outcome.errors.find("error: ", 1), std::string::npos) << outcome.errors;
  }
  EXPECT_THAT(refused({"eval", "loss", "--load", path("run"), "--data-path", "1", a, "2", b}),
              HasSubstr("--data-path is a blend; one corpus is scored at a time"));
}

}  // namespace
}  // namespace teratron::testing
