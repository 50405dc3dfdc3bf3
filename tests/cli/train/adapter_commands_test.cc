// Adapters by the program: trained beside frozen weights, resumed, generated with, merged, to PEFT's files and back.

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

class AdapterCommands : public TrainingCommands<> {
 protected:
  AdapterCommands() { succeed(training_.command({"--train-iters", "4", "--save", path("base")})); }

  // A training of adapters, of which `more` says the rest.
  Words adapted(const Words& more) const {
    const Words start = {"train", "--finetune",         path("base"), "--data-path", path("data"), "--seq-length",
                         "32",    "--micro-batch-size", "2",          "--lr",        "0.01",       "--lora-rank",
                         "4",     "--lora-targets",     "all-linear"};
    return with(start, more);
  }
  std::string generated(const std::string& model) const {
    return succeed(
        {"generate", "--load", path(model), "--prompt", "the rank", "--max-new-tokens", "20", "--seed", "3"});
  }
};

TEST_F(AdapterCommands, ResumedRunHasTheBitsOfTheUninterruptedOne) {
  succeed(adapted({"--lora-dropout", "0.1", "--train-iters", "6", "--save", path("whole")}));
  succeed(adapted({"--lora-dropout", "0.1", "--train-iters", "6", "--save", path("halves"), "--save-interval", "3"}));
  succeed({"train", "--load", path("halves"), "--iteration", "3", "--save", path("again")});
  const std::string name = "iter_0000006/model.safetensors";
  EXPECT_EQ(read_file(fs::path(path("again")) / name), read_file(fs::path(path("whole")) / name));
  // The adapters alone: rank 4 beside a hidden size of 64.
  EXPECT_LT(fs::file_size(fs::path(path("whole")) / name),
            fs::file_size(fs::path(path("base")) / "iter_0000004/model.safetensors") / 4);
}

TEST_F(AdapterCommands, MergedAndConvertedOnesGenerateTheSame) {
  succeed(adapted({"--rslora", "--train-iters", "40", "--lr", "0.05", "--save", path("adapted")}));
  const std::string expected = generated("adapted");
  EXPECT_NE(expected, generated("base"));
  succeed({"convert", "--from", "teratron", "--to", "teratron", "--merge", path("adapted"), path("merged")});
  EXPECT_EQ(generated("merged"), expected);
  succeed({"convert", "--from", "teratron", "--to", "peft", path("adapted"), path("peft")});
  succeed({"convert", "--from", "peft", "--to", "teratron", "--base", path("base"), path("peft"), path("back")});
  EXPECT_EQ(generated("back"), expected);
}

TEST_F(AdapterCommands, FrozenWeightsInBlocksResumeAndMergeIntoPreciseOnes) {
  const Words blocks = {"--frozen-weights", "q8_0"};
  succeed(adapted(with(blocks, {"--train-iters", "6", "--save", path("whole")})));
  succeed(adapted(with(blocks, {"--train-iters", "6", "--save", path("halves"), "--save-interval", "3"})));
  succeed({"train", "--load", path("halves"), "--iteration", "3", "--save", path("again")});
  const std::string name = "iter_0000006/model.safetensors";
  EXPECT_EQ(read_file(fs::path(path("again")) / name), read_file(fs::path(path("whole")) / name));
  succeed(adapted({"--train-iters", "6", "--save", path("precise")}));
  const std::vector<double> losses = TinyTraining::losses(path("whole")),
                            precise = TinyTraining::losses(path("precise"));
  ASSERT_EQ(losses.size(), precise.size());
  EXPECT_NE(losses, precise);
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], precise[i], 0.01 * precise[i]);
  // Adapters whose B hardly leaves 0 add nothing that fp32 holds: the merged model is the base as it was saved.
  succeed(adapted(with(blocks, {"--train-iters", "1", "--lr", "1e-30", "--min-lr", "0", "--save", path("unmoved")})));
  succeed({"convert", "--from", "teratron", "--to", "teratron", "--merge", path("unmoved"), path("merged")});
  EXPECT_EQ(generated("merged"), generated("base"));
}

TEST_F(AdapterCommands, FaultsAreOneClearError) {
  EXPECT_THAT(refused(training_.command({"--train-iters", "1", "--lora-rank", "4"})), HasSubstr("--finetune DIR"));
  EXPECT_THAT(refused(adapted({"--train-iters", "1", "--lora-targets", "q_proj"})),
              HasSubstr("has no layer 'q_proj' for an adapter; it has c_attn, c_proj, c_fc"));
  EXPECT_THAT(refused(adapted({"--train-iters", "1", "--lora-rank", "0"})), HasSubstr("their rank, is missing"));
  EXPECT_THAT(refused(adapted({"--train-iters", "1", "--frozen-weights", "q8_0", "--tp", "4"})),
              HasSubstr("16 columns on each tensor-parallel rank, and weights in q8_0 come in blocks of 32; leave out "
                        "--frozen-weights or take fewer ranks"));
  EXPECT_THAT(refused(training_.command({"--train-iters", "1", "--frozen-weights", "q8_0"})),
              HasSubstr("is for weights beside adapters"));
  succeed(adapted({"--train-iters", "2", "--save", path("adapted")}));
  EXPECT_THAT(refused({"convert", "--from", "teratron", "--to", "hf", path("adapted"), path("hf")}),
              HasSubstr("holds adapters, and no whole model"));
  fs::rename(path("base"), path("elsewhere"));
  EXPECT_THAT(refused({"generate", "--load", path("adapted"), "--prompt", "a"}), HasSubstr("which is not there"));
  succeed(training_.command({"--train-iters", "4", "--seed", "7", "--save", path("base")}));
  EXPECT_THAT(refused({"generate", "--load", path("adapted"), "--prompt", "a"}), HasSubstr("another one by now"));
}

}  // namespace
}  // namespace teratron::testing
