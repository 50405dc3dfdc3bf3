// --weights: matrices in blocks of 8 and of 4 bits, in the commands that only read a model.

#include <cmath>

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

class WeightBlocks : public ::testing::Test {
 protected:
  // One for all tests.
  static const TinyTraining& training() {
    static const TinyTraining made;
    static const Outcome trained =
        must(made.command({"--train-iters", "60", "--save", made.path("run"), "--hidden-dropout", "0"}));
    return made;
  }
  static std::string path(const std::string& name) { return training().path(name); }
  static Words eval_loss() { return {"eval", "loss", "--load", path("run"), "--data-path", path("data")}; }
  static Words generate() {
    return {"generate",      "--load", path("run"), "--max-new-tokens", "12", "--ignore-end-of-text",
            "--temperature", "0.8"};
  }
};

// A loss is the logarithm of a perplexity: 0.001 and 0.03 of it are 0.1 % and 3 %. A layout adds in another order,
// which now and then rounds an activation to the next of 127 whole numbers.
TEST_F(WeightBlocks, LossesStayNearThoseOfFp32OnAnyBackEndAndLayout) {
  const double exact = json_of(eval_loss()).at("loss");
  for (const auto& [type, most] : {std::pair{"q8_0", 0.001}, std::pair{"q4_0", 0.03}}) {
    const Words command = with(eval_loss(), {"--weights", type});
    const double alone = json_of(command).at("loss");
    EXPECT_NEAR(alone, exact, most) << type;
    EXPECT_GT(std::abs(alone - exact), 1e-7) << type << " is not what was computed with";
    for (const Words& more : {Words{"--backend", "ref"}, {"--tp", "2"}, {"--pp", "2"}, {"--tp", "2", "--bf16"}}) {
      const double tolerance = more.back() == "--bf16" ? std::exp2(-7) : 2e-4;
      EXPECT_NEAR(json_of(with(command, more)).at("loss"), alone, tolerance) << type << " " << more.back();
    }
  }
}

TEST_F(WeightBlocks, TextsAreThoseOfAnyBatchAndNumberOfThreads) {
  write_file_atomically(path("prompts.txt"), "the rank\na layer\nthe gradient waits\nsums\na");
  for (const char* type : {"q8_0", "q4_0"}) {
    const Words command = with(generate(), {"--weights", type, "--prompts", path("prompts.txt"), "--json", "-"});
    const std::string all = succeed(command);
    EXPECT_EQ(succeed(with(command, {"--batch-size", "1"})), all);
    EXPECT_EQ(succeed(with(command, {"--batch-size", "3", "--threads", "2"})), all);
  }
}

TEST_F(WeightBlocks, CannotBeHadEverywhere) {
  const Words blocks = {"--weights", "q8_0"};
  EXPECT_THAT(
      refused(with(with(generate(), blocks), {"--tp", "4"})),
      AllOf(HasSubstr("16 columns on each tensor-parallel rank"), HasSubstr("blocks of 32"), HasSubstr("--tp")));
  EXPECT_THAT(refused(with(with(eval_loss(), blocks), {"--backend", "cuda"})),
              HasSubstr("weights in q8_0 (--weights, or --frozen-weights of train) are for CPUs"));
  EXPECT_THAT(refused(training().command({"--train-iters", "1", "--weights", "q8_0"})), HasSubstr("--weights"));
  EXPECT_THAT(refused(with(generate(), {"--weights", "q5_0"})), HasSubstr("q8_0"));
}

}  // namespace
}  // namespace teratron::testing
