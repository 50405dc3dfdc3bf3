// --bf16, --fp16 and --tf32 of the commands that run a model.

#include <cmath>

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

class PrecisionCommands : public ::testing::Test {
 protected:
  // One for all tests.
  static const TinyTraining& training() {
    static const TinyTraining made;
    static const Outcome trained =
        must(made.command({"--train-iters", "30", "--save", made.path("run"), "--hidden-dropout", "0"}));
    return made;
  }
  static std::string path(const std::string& name) { return training().path(name); }
  static Words eval_loss() { return {"eval", "loss", "--load", path("run"), "--data-path", path("data")}; }
  static Words eval_wikitext() {
    return {"eval", "wikitext103", "--load", path("run"), "--data", path("corpus.txt"), "--overlapping-eval", "16"};
  }
  static Words generate() {
    return {"generate", "--load",           path("run"), "--prompt",
            "the rank", "--max-new-tokens", "20",        "--ignore-end-of-text"};
  }
};

// Logits of this model are of size 1 to 4, of which 2^-7 is what one in bf16 is off by at most; the mean over all
// targets is off by less. That it is computed in these types at all shows in the last digits.
TEST_F(PrecisionCommands, EvaluationsOfSixteenBitsGiveTheLossOfFp32WithinRounding) {
  for (const Words& command : {eval_loss(), eval_wikitext()}) {
    const double exact = json_of(command).at("loss");
    for (const char* backend : {"cpu", "ref"}) {
      if (command == eval_wikitext() && backend == std::string("ref")) continue;  // which is slow
      const double bf16 = json_of(with(command, {"--bf16", "--backend", backend})).at("loss");
      const double fp16 = json_of(with(command, {"--fp16", "--backend", backend})).at("loss");
      EXPECT_NEAR(bf16, exact, std::exp2(-7)) << backend;
      EXPECT_NEAR(fp16, exact, std::exp2(-10)) << backend;
      EXPECT_NE(bf16, fp16);
      EXPECT_GT(std::abs(bf16 - exact), 1e-6) << "which is what fp32 is off by";
    }
  }
}

TEST_F(PrecisionCommands, LayoutsOfSixteenBitsAgree) {
  const double alone = json_of(with(eval_loss(), {"--bf16"})).at("loss");
  for (const Words& layout : {Words{"--tp", "2"}, Words{"--pp", "2"}, Words{"--dp", "2"}}) {
    EXPECT_NEAR(json_of(with(eval_loss(), with({"--bf16"}, layout))).at("loss"), alone, std::exp2(-8));
  }
}

TEST_F(PrecisionCommands, GenerationRunsInSixteenBits) {
  for (const char* flag : {"--bf16", "--fp16"}) {
    for (const Words& more : {Words{}, Words{"--tp", "2"}, Words{"--backend", "ref"}}) {
      const Json made = json_of(with(generate(), with({flag}, more)));
      EXPECT_EQ(made.at("tokens").size(), 20U) << flag;
    }
  }
}

TEST_F(PrecisionCommands, AllCommandsRefuseContradictionsAlike) {
  const Words train = training().command({"--train-iters", "1", "--save", path("never")});
  const Words profile = {"profile", "--model", "tiny", "--vocab-size", "300", "--seq-length", "32"};
  for (const Words& command : {train, profile, eval_loss(), eval_wikitext(), generate()}) {
    const auto faults_of = [&](const Words& flags) { return refused(with(command, flags)); };
    EXPECT_THAT(faults_of({"--bf16", "--fp16"}), HasSubstr("--bf16 and --fp16 exclude each other; give one"));
    EXPECT_THAT(faults_of({"--tf32"}), HasSubstr("--tf32 needs --backend cuda"));
    EXPECT_THAT(faults_of({"--tf32", "--backend", "ref"}), HasSubstr("--tf32 needs --backend cuda"));
    EXPECT_THAT(faults_of({"--tf32", "--bf16", "--backend", "cuda"}),
                AllOf(HasSubstr("--tf32 is about products of fp32 values and --bf16 has none"),
                      Not(HasSubstr("needs --backend cuda"))));
    EXPECT_THAT(faults_of({"--gemm-timing", "maybe"}), AllOf(HasSubstr("--gemm-timing"), HasSubstr("on")));
  }
  EXPECT_FALSE(std::filesystem::exists(path("never")));
}

// On a machine without a GPU all that is wrong is that there is none.
TEST_F(PrecisionCommands, Tf32OnAGpuIsNoContradiction) {
  for (const Words& command : {eval_loss(), generate()}) {
    const Outcome outcome = run_teratron(with(command, {"--tf32", "--gemm-timing", "off", "--backend", "cuda"}));
    EXPECT_THAT(outcome.exit_code, ::testing::AnyOf(0, 3)) << outcome.errors;
  }
}

}  // namespace
}  // namespace teratron::testing
