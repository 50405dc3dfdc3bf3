// Documents that share a sample: what train says of the flags, and that eval loss treats documents as training did.

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

class DocumentCommands : public TrainingCommands<1000> {
 protected:
  DocumentCommands() {
    RandomSequence random(RandomStream{.seed = 3});
    std::string lines;
    for (int document = 0; document < 80; ++document) {
      std::string words;
      const auto length = 1 + random.below(30);
      for (std::uint64_t i = 0; i < length; ++i) words += static_cast<char>('a' + random.below(6));
      lines += "{\"text\": \"" + words + "\"}\n";
    }
    write_file_atomically(path("corpus.jsonl"), lines);
    succeed({"data", "tokenize", "--tokenizer", path("tokenizer"), "--out", path("documents"), path("corpus.jsonl")});
  }

  Outcome train(const std::string& run, const Words& more) const {
    Words words = {"--num-layers", "1", "--hidden-size", "16", "--seq-length", "16", "--split", "3,1"};
    words = with(words, {"--data-path", path("documents"), "--save", path(run), "--train-iters", "4"});
    words = with(words, {"--eval-interval", "4", "--eval-iters", "1000", "--hidden-dropout", "0"});
    return run_teratron(training_.command(with(words, more)));
  }

  double evaluated(const std::string& run, const Words& more) const {
    const Words words = {"eval", "loss", "--load", path(run), "--data-path", path("documents"), "--split", "3,1"};
    return Json::parse(succeed(with(with(words, {"--json", "-"}), more))).at("loss");
  }
};

// Validation reads the same windows, but for the last, which may be short. With such large weights, what a token sees
// changes its loss by far more than that.
TEST_F(DocumentCommands, EvalLossKeepsDocumentsApartAsTrainingDid) {
  const Words large = {"--init-method-std", "0.5", "--attention-dropout", "0"};
  ASSERT_EQ(train("apart", with(large, {"--reset-attention-mask", "--reset-position-ids"})).exit_code, 0);
  ASSERT_EQ(train("together", large).exit_code, 0);
  for (const std::string run : {"apart", "together"}) {
    const std::string metrics = read_file(path(run + "/metrics.jsonl"));
    const auto at = metrics.rfind("\"validation_loss\":");
    ASSERT_NE(at, std::string::npos) << metrics;
    const double validation = std::stod(metrics.substr(at + 18));
    EXPECT_NEAR(evaluated(run, {}), validation, 0.01 * validation) << run;
  }
}

TEST_F(DocumentCommands, ResultsAreTheSameOnRanksAndInSlices) {
  const Words all = {"--reset-attention-mask", "--reset-position-ids", "--eod-mask-loss"};
  ASSERT_EQ(train("alone", with(all, {"--global-batch-size", "4"})).exit_code, 0);
  const auto expected = TinyTraining::losses(path("alone"));
  const std::vector<Words> layouts = {{"--data-parallel-size", "2"},
                                      {"--tensor-model-parallel-size", "2", "--sequence-parallel"},
                                      {"--token-slices", "7,9"},
                                      {"--recompute-granularity", "full"}};
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const std::string run = "layout" + std::to_string(i);
    const Outcome outcome = train(run, with(with(all, {"--global-batch-size", "4"}), layouts[i]));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    const auto losses = TinyTraining::losses(path(run));
    ASSERT_EQ(losses.size(), expected.size());
    // fp32, and Adam, which at first divides gradients by their own size.
    for (std::size_t step = 0; step < losses.size(); ++step) EXPECT_NEAR(losses[step], expected[step], 1e-3) << run;
  }
}

TEST_F(DocumentCommands, PackedRunsAreTheSameOnRanksInSlicesAndResumed) {
  const Words all = {"--packing",           "best-fit", "--reset-attention-mask", "--reset-position-ids",
                     "--global-batch-size", "4",        "--num-layers",           "2",
                     "--lr-decay-iters",    "4"};
  const Outcome alone = train("alone", all);
  ASSERT_EQ(alone.exit_code, 0) << alone.errors;
  EXPECT_THAT(alone.output + alone.errors, HasSubstr("padding"));
  const auto expected = TinyTraining::losses(path("alone"));
  ASSERT_EQ(train("resumed", with(all, {"--train-iters", "2"})).exit_code, 0);
  const std::vector<std::pair<std::string, Words>> runs = {
      {"resumed", {"--load", path("resumed")}},
      {"copies", {"--data-parallel-size", "2"}},
      {"tensor",
       {"--tensor-model-parallel-size", "2", "--micro-batch-size", "1", "--sequence-parallel", "--token-slices",
        "documents:3"}},
      {"stages", {"--pipeline-model-parallel-size", "2", "--token-slices", "documents:3"}},
      {"slices", {"--token-slices", "documents:16", "--recompute-granularity", "full", "--sample-prompt", "ab"}}};
  for (const auto& [run, more] : runs) {
    const Outcome outcome = train(run, with(all, more));
    ASSERT_EQ(outcome.exit_code, 0) << run << outcome.errors;
    const auto losses = TinyTraining::losses(path(run));
    ASSERT_EQ(losses.size(), expected.size()) << run;
    // fp32, and Adam, which at first divides gradients by their own size.
    for (std::size_t step = 0; step < losses.size(); ++step) EXPECT_NEAR(losses[step], expected[step], 1e-3) << run;
  }
  const Outcome stream =
      train("other", {"--load", path("alone"), "--reset-attention-mask", "--reset-position-ids", "--global-batch-size",
                      "4", "--num-layers", "2", "--lr-decay-iters", "4", "--train-iters", "5", "--packing", "stream"});
  EXPECT_THAT(stream.errors, AllOf(HasSubstr("--packing best-fit there, stream now"), HasSubstr("--override-data")));
}

TEST_F(DocumentCommands, PackingNeedsDocumentsApartAndCutsByDocumentsNeedPacking) {
  const Outcome together = train("together", {"--packing", "best-fit"});
  EXPECT_EQ(together.exit_code, 2);
  EXPECT_THAT(together.errors, AllOf(HasSubstr("--packing best-fit"), HasSubstr("add --reset-attention-mask")));
  const Outcome stream = train("stream", {"--reset-attention-mask", "--token-slices", "documents:4"});
  EXPECT_EQ(stream.exit_code, 2);
  EXPECT_THAT(stream.errors, AllOf(HasSubstr("--token-slices documents:4"), HasSubstr("add --packing best-fit")));
  const Outcome none =
      train("none", {"--reset-attention-mask", "--packing", "best-fit", "--token-slices", "documents:0"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.errors, HasSubstr("documents:0"));
}

TEST_F(DocumentCommands, WithoutATokenizerThatEndsDocumentsAreRefusedOnce) {
  for (const std::string flag : {"--reset-attention-mask", "--reset-position-ids", "--eod-mask-loss"}) {
    EXPECT_THAT(refused({"train", "--data-path", path("documents"), "--vocab-size", "300", flag}),
                AllOf(HasSubstr(flag), HasSubstr("--tokenizer"), HasSubstr("where documents end")));
  }
}

}  // namespace
}  // namespace teratron::testing
