// Training, evaluation and generation with the binary on several thread ranks: the same numbers and the same text.

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

const std::vector<Words> kLayouts = {
    {"--tp", "2"}, {"--tp", "4"}, {"--dp", "2"}, {"--tp", "2", "--data-parallel-size", "2"}};

class LayoutCommands : public TrainingCommands<1000> {
 protected:
  LayoutCommands() { succeed(train({"--train-iters", "4", "--save", path("run"), "--global-batch-size", "5"})); }

  Words train(const Words& more) const {
    const Words size = {"--num-layers", "1", "--hidden-size", "16", "--seq-length", "8", "--lr", "0.01"};
    return training_.command(with(size, more));
  }
};

void expect_near(const Json& actual, const Json& expected, const char* key) {
  const double value = expected.at(key).get<double>();
  EXPECT_NEAR(actual.at(key).get<double>(), value, 1e-5 * value) << key;
}

TEST_F(LayoutCommands, EvaluationsGiveTheSameNumbersAndAPeakForEachRank) {
  const Words loss = {"eval", "loss",       "--load", path("run"), "--data-path", path("data"), "--overlapping-eval",
                      "3",    "--baselines"};
  const Words words = {"eval", "wikitext103", "--load", path("run"), "--data", path("corpus.txt")};
  const Json loss_alone = json_of(loss), words_alone = json_of(words);
  for (const Words& layout : kLayouts) {
    const Json loss_there = json_of(with(loss, layout)), words_there = json_of(with(words, layout));
    for (const char* key : {"targets", "loss", "bits_per_byte", "trigram_loss"}) {
      expect_near(loss_there, loss_alone, key);
    }
    for (const char* key : {"targets", "perplexity", "perplexity_per_token"}) {
      expect_near(words_there, words_alone, key);
    }
    EXPECT_EQ(loss_there.at("peak_memory_bytes").size(), layout.size() == 4 || layout.back() == "4" ? 4U : 2U);
  }
}

TEST_F(LayoutCommands, GenerationGivesTheSameTextOnce) {
  for (const char* temperature : {"0", "0.8"}) {
    const Words words = {"generate",      "--load",           path("run"), "--prompt",
                         "abc",           "--max-new-tokens", "30",        "--ignore-end-of-text",
                         "--temperature", temperature};
    const std::string alone = succeed(words);
    EXPECT_EQ(alone.substr(0, 3), "abc");
    for (const char* ranks : {"2", "4"}) EXPECT_EQ(succeed(with(words, {"--tp", ranks})), alone);
  }
}

TEST_F(LayoutCommands, HeadsThatCannotBeSharedAreOneMessageWithTheSizesThatWork) {
  for (const Words& words :
       std::vector<Words>{{"eval", "loss", "--load", path("run"), "--data-path", path("data"), "--tp", "3"},
                          {"eval", "wikitext103", "--load", path("run"), "--data", path("corpus.txt"), "--tp", "3"},
                          {"generate", "--load", path("run"), "--prompt", "abc", "--tp", "3"}}) {
    const std::string errors = refused(words);
    EXPECT_THAT(errors, AllOf(HasSubstr("--num-attention-heads 4"), HasSubstr("sizes that work: 1, 2, 4")));
    EXPECT_EQ(errors.find("error: "), errors.rfind("error: ")) << "once, not once a rank";
  }
  EXPECT_THAT(refused({"generate", "--load", path("run"), "--tp", "0", "--temperature", "-1"}),
              AllOf(HasSubstr("2 faults"), HasSubstr("--tensor-model-parallel-size is 0"), HasSubstr("--temperature")));
}

TEST_F(LayoutCommands, AnUnevenBatchTrainsAlikeOnEveryLayout) {
  const Json alone = json_of(train({"--train-iters", "6", "--global-batch-size", "5"}));
  for (const Words& layout : kLayouts) {
    const Json there = json_of(train(with({"--train-iters", "6", "--global-batch-size", "5"}, layout)));
    expect_near(there, alone, "final_loss");
    expect_near(there, alone, "validation_loss");
    EXPECT_EQ(there.at("consumed_samples"), 30);
  }
}

// All but the time that an update took, and the memory.
std::vector<Json> metrics_of(const std::string& file) {
  std::vector<Json> lines = json_lines(file);
  for (Json& line : lines) {
    for (const char* cost : {"seconds", "tokens_per_second", "mfu", "memory_bytes"}) line.erase(cost);
  }
  return lines;
}

TEST_F(LayoutCommands, ARampedRunThatIsStoppedAndResumedLeavesTheMetricsOfOneThatIsNot) {
  const Words ramp = {
      "--rampup-batch-size", "2", "2", "12", "--global-batch-size", "6", "--dp", "2", "--lr-decay-iters", "9",
      "--eval-interval",     "4"};
  const auto run = [&](const char* iterations, const std::string& save, const Words& more) {
    return json_of(train(with(with(with(ramp, {"--train-iters", iterations, "--save", path(save)}), more), {})));
  };
  const Json whole = run("9", "whole", {});
  for (const char* stop : {"2", "3", "4", "7"}) {
    const std::string save = std::string("stopped-") + stop;
    run(stop, save, {});
    const Json resumed = run("9", save, {"--load", path(save)});
    EXPECT_EQ(resumed.at("final_loss"), whole.at("final_loss"));
    EXPECT_EQ(resumed.at("consumed_samples"), whole.at("consumed_samples"));
    EXPECT_EQ(metrics_of(path(save + "/metrics.jsonl")), metrics_of(path("whole/metrics.jsonl"))) << stop;
  }
  EXPECT_EQ(metrics_of(path("whole/metrics.jsonl")).front().at("global_batch_size"), 2);
}

}  // namespace
}  // namespace teratron::testing
