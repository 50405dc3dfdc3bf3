// Pairs of answers from lines of JSON to a model that prefers: data preferences and train --dpo.

#include <cmath>

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

class PreferenceCommands : public TrainingCommands<300> {
 protected:
  PreferenceCommands() {
    std::string lines;
    for (const auto& [asked, chosen, rejected] :
         {std::array{"ranks", "sums", "waits"}, std::array{"layer", "waits", "sums"},
          std::array{"the rank", "a", "sums"}, std::array{"gradient", "the layer", "a a"}}) {
      lines += fmt::format(R"({{"prompt": "{}=", "chosen": "{}", "rejected": "{}"}})"
                           "\n",
                           asked, chosen, rejected);
    }
    write_file_atomically(path("pairs.jsonl"), lines);
    succeed(training_.command({"--train-iters", "4", "--split", "1", "--save", path("base")}));
  }
  Words preferences(const Words& more) const {
    return with({"data", "preferences", path("pairs.jsonl"), "--tokenizer", path("tokenizer")}, more);
  }
  Words preferring(const Words& more) const {
    const Words words = words_of(
        "train --dpo --split 1 --lr 0.02 --lora-rank 4 --seq-length 24 --lora-targets all-linear --hidden-dropout 0 "
        "--attention-dropout 0");
    return with(with(words, {"--finetune", path("base"), "--data-path", path("pairs")}), more);
  }
  static std::vector<Json> metrics(const fs::path& run) { return json_lines(run / "metrics.jsonl"); }
};

TEST_F(PreferenceCommands, AModelComesToPreferTheChosenAnswers) {
  EXPECT_THAT(succeed(preferences({"--out", path("pairs")})), AllOf(HasSubstr("4 pairs, "), HasSubstr("to learn")));
  EXPECT_THAT(refused(preferring({"--train-iters", "40", "--valid-data-path", path("pairs"), "--save", path("run")})),
              HasSubstr("--valid-data-path"))
      << "validated on what it is trained on";
  const Outcome outcome = must(preferring(
      {"--train-iters", "40", "--split", "3,1", "--eval-iters", "4", "--eval-interval", "20", "--save", path("run")}));
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("pairs of answers in"), HasSubstr(" | reward margin: "),
                                    HasSubstr(" | reward accuracy: 1.0000"),
                                    HasSubstr("validation after iteration 40: loss"), HasSubstr(", reward accuracy ")));
  EXPECT_THAT(outcome.errors, Not(HasSubstr("perplexity")));
  const std::vector<Json> lines = metrics(path("run"));
  EXPECT_NEAR(lines.front()["loss"].get<double>(), std::log(2), 1e-6);
  EXPECT_EQ(lines.front()["reward_margin"], 0);
  for (const Json& line : lines) {
    EXPECT_NEAR(line["reward_chosen"].get<double>() - line["reward_rejected"].get<double>(),
                line["reward_margin"].get<double>(), 1e-9);
  }
  EXPECT_EQ(lines.back()["kind"], "validation");
  EXPECT_FALSE(lines.back().contains("validation_perplexity"));
}

TEST_F(PreferenceCommands, ResumedRunHasTheBitsOfTheUninterruptedOne) {
  succeed(preferences({"--out", path("pairs")}));
  const Words run = preferring({"--train-iters", "6", "--lora-dropout", "0.1", "--dpo-beta", "0.4"});
  succeed(with(run, {"--save", path("whole")}));
  succeed(with(run, {"--save", path("halves"), "--save-interval", "3"}));
  succeed({"train", "--load", path("halves"), "--iteration", "3", "--save", path("again")});
  const std::string name = "iter_0000006/model.safetensors";
  EXPECT_EQ(read_file(fs::path(path("again")) / name), read_file(fs::path(path("whole")) / name));
}

TEST_F(PreferenceCommands, LossesAndRewardsAreTheSameOnRanksAndInSlices) {
  succeed(preferences({"--out", path("pairs")}));
  const Words batch = {"--train-iters", "4", "--global-batch-size", "2"};
  succeed(preferring(with(batch, {"--micro-batch-size", "2", "--save", path("alone")})));
  const std::vector<Json> expected = metrics(path("alone"));
  for (const Words& layout :
       {Words{"--dp", "2"}, Words{"--tp", "2", "--sequence-parallel"}, Words{"--pp", "2", "--token-slices", "9,15"},
        Words{"--pp", "2", "--vocabulary-parallel"}}) {
    succeed(preferring(with(with(batch, layout), {"--micro-batch-size", "1", "--save", path("layout")})));
    const std::vector<Json> found = metrics(path("layout"));
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      for (const char* key : {"loss", "reward_chosen", "reward_margin"}) {
        EXPECT_NEAR(found[i][key].get<double>(), expected[i][key].get<double>(), 1e-3) << layout[0] << " " << key;
      }
    }
    fs::remove_all(path("layout"));
  }
}

TEST_F(PreferenceCommands, PairsAreShownWithTheWordsToLearn) {
  EXPECT_THAT(succeed(preferences({"--show", "2"})),
              AllOf(HasSubstr("--- 1, chosen: "), HasSubstr("ranks=[[sums<|endoftext|>]]\n--- 1, rejected: "),
                    HasSubstr("layer=[[sums<|endoftext|>]]"), Not(HasSubstr("--- 3"))));
}

TEST_F(PreferenceCommands, PairsOfEqualAnswersAreCounted) {
  EXPECT_THAT(succeed(preferences({"--out", path("pairs")})), Not(HasSubstr("equal")));
  write_file_atomically(path("pairs.jsonl"), R"({"prompt": "a", "chosen": "rain", "rejected": "rain"}
{"prompt": "a", "chosen": "rain", "rejected": "rain "}
)");
  EXPECT_THAT(succeed(preferences({"--out", path("equal")})), HasSubstr("1 pair whose answers are equal, which teach"));
  EXPECT_EQ(json_of(preferences({"--out", path("again")}))["equal"], 1);
}

TEST_F(PreferenceCommands, FaultsAreOneClearError) {
  succeed(preferences({"--out", path("pairs")}));
  const Words one = {"--train-iters", "1"};
  EXPECT_THAT(refused(preferring(with(one, {"--lora-rank", "0"}))), HasSubstr("--lora-rank N"));
  EXPECT_THAT(refused(preferring(with(one, {"--sft"}))), HasSubstr("leave one of them out"));
  EXPECT_THAT(refused(preferring(with(one, {"--packing", "best-fit"}))), HasSubstr("--dpo packs pairs"));
  EXPECT_THAT(refused(preferring(with(one, {"--dpo-beta", "0"}))), HasSubstr("--dpo-beta is 0"));
  EXPECT_THAT(refused(preferring(with(one, {"--pp", "2", "--vocabulary-parallel", "--token-slices", "9,15"}))),
              HasSubstr("before the first gradient"));
  EXPECT_THAT(refused(preferring(with(one, {"--data-path", path("data")}))), HasSubstr("data preferences"));
  EXPECT_THAT(refused(training_.command(with(one, {"--data-path", path("pairs")}))), HasSubstr("--dpo"));
  EXPECT_THAT(refused(training_.command(with(one, {"--dpo-beta", "0.2"}))), HasSubstr("--dpo, which is missing"));
  EXPECT_THAT(refused({"eval", "loss", "--load", path("base"), "--data-path", path("pairs")}), HasSubstr("--dpo"));
  succeed(preferring(with(one, {"--save", path("adapted")})));
  EXPECT_THAT(refused(preferring(with(one, {"--finetune", path("adapted")}))),
              HasSubstr("convert --merge --from teratron --to teratron"));
  write_file_atomically(path("pairs.jsonl"), "{\"chosen\": \"a\"}\n");
  EXPECT_THAT(refused(preferences({"--show", "1"})), AllOf(HasSubstr("pairs.jsonl"), HasSubstr("\"rejected\"")));
}

}  // namespace
}  // namespace teratron::testing
