// The first updates of a small BERT on real text, against the curve that is kept of them. Where the curve goes in an
// hour is in bench/results/bert_learning.md.

#include "base/trials.h"
#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

TEST(BertCurve, IsTheOneThatIsKept) {
#ifdef TERATRON_SANITIZED
  GTEST_SKIP() << "with sanitizers, it takes minutes; the plain build has this test too";
#endif
  const fs::path data = fs::path(TERATRON_SOURCE_DIR) / "../shared/data";
  const fs::path text = data / "race/dev.high.jsonl", words = data / "bert-vocab";
  if (!fs::exists(text) || !fs::exists(words)) GTEST_SKIP() << "there is no " << text << " or no " << words;
  const TemporaryFolder folder;
  const std::size_t updates = is_fast_set() ? 16 : 40;
  succeed({"data", "tokenize", "--tokenizer", words, "--split-sentences", "--json-key", "article", "--out",
           folder / "corpus", text});
  const Words settings = words_of(
      "--model bert-tiny --seq-length 128 --micro-batch-size 16 --lr 1e-3 --lr-decay-style linear --lr-warmup-iters 10 "
      "--lr-decay-iters 40 --hidden-dropout 0 --attention-dropout 0 --peak-tflops 1 --save-interval-in-mins 0");
  succeed(with({"train", "--tokenizer", words, "--data-path", folder / "corpus", "--save", folder / "run",
                "--train-iters", std::to_string(updates)},
               settings));
  const std::vector<double> losses = TinyTraining::losses(folder / "run");
  const Json kept = Json::parse(read_file(fs::path(TERATRON_SOURCE_DIR) / "tests/golden/bert_curve.json"));
  ASSERT_EQ(losses.size(), updates);
  // Other rounding moves them by less: splitting all layers over two ranks did so by 2e-8, another seed by 8e-2.
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double expected = kept["losses"][i];
    EXPECT_NEAR(losses[i], expected, 1e-4 * expected) << "update " << i + 1;
  }
}

}  // namespace
}  // namespace teratron::testing
