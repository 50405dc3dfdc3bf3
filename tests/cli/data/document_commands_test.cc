// Documents that share a sample: what train says of the flags, and that eval loss treats documents as training did.

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

class DocumentCommands : public TrainingCommands<1000> {
 protected:
  DocumentCommands() {
    write_file_atomically(path("corpus.jsonl"), random_documents(80, 1, 30));
    succeed({"data", "tokenize", "--tokenizer", path("tokenizer"), "--out", path("documents"), path("corpus.jsonl")});
  }

  Words training(const Words& more) const {
    const Words words = words_of(
        "--num-layers 1 --hidden-size 16 --seq-length 16 --split 3,1 --train-iters 4 --eval-interval 4 "
        "--eval-iters 1000 --hidden-dropout 0");
    return training_.command(with(with(words, {"--data-path", path("documents")}), more));
  }
  Outcome train(const std::string& run, const Words& more) const {
    return run_teratron(training(with({"--save", path(run)}, more)));
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
    const double validation = json_lines(path(run + "/metrics.jsonl")).back().at("validation_loss");
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
    SCOPED_TRACE(run);
    expect_near_losses(TinyTraining::losses(path(run)), expected);
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
    SCOPED_TRACE(run);
    expect_near_losses(TinyTraining::losses(path(run)), expected);
  }
  const Outcome stream =
      train("other", {"--load", path("alone"), "--reset-attention-mask", "--reset-position-ids", "--global-batch-size",
                      "4", "--num-layers", "2", "--lr-decay-iters", "4", "--train-iters", "5", "--packing", "stream"});
  EXPECT_THAT(stream.errors, AllOf(HasSubstr("--packing best-fit there, stream now"), HasSubstr("--override-data")));
}

TEST_F(DocumentCommands, PackingNeedsDocumentsApartAndCutsByDocumentsNeedPacking) {
  const auto fault = [&](const Words& more) { return refused(training(more)); };
  EXPECT_THAT(fault({"--packing", "best-fit"}),
              AllOf(HasSubstr("--packing best-fit"), HasSubstr("add --reset-attention-mask")));
  EXPECT_THAT(fault({"--reset-attention-mask", "--token-slices", "documents:4"}),
              AllOf(HasSubstr("--token-slices documents:4"), HasSubstr("add --packing best-fit")));
  EXPECT_THAT(fault({"--reset-attention-mask", "--packing", "best-fit", "--token-slices", "documents:0"}),
              HasSubstr("documents:0"));
}

TEST_F(DocumentCommands, WithoutATokenizerThatEndsDocumentsAreRefusedOnce) {
  for (const std::string flag : {"--reset-attention-mask", "--reset-position-ids", "--eod-mask-loss"}) {
    EXPECT_THAT(refused({"train", "--data-path", path("documents"), "--vocab-size", "300", flag}),
                AllOf(HasSubstr(flag), HasSubstr("--tokenizer"), HasSubstr("where documents end")));
  }
}

}  // namespace
}  // namespace teratron::testing
