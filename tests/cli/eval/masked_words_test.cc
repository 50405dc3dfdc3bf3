// `eval loss` of a BERT has the losses of its training's validation, and `fill-mask` predicts words. Its numbers are
// compared with transformers' in classify_oracle_test.cc.

#include <cmath>

#include "base/lines.h"
#include "cli/binary.h"
#include "tasks/synthetic_tasks.h"

namespace teratron::testing {
namespace {

class MaskedWords : public FolderTest {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(path("words"));
    put_file(path("words/vocab.txt"), task_vocabulary());
    std::string sentences;
    for (std::size_t i = 0; i < 60; ++i) {
      sentences += fmt::format("{0} {1} {3}. {2} {0} {1}. {3} {2}.\n\n", kTaskWords[i % 7], kTaskWords[i % 9],
                               kTaskWords[i % 5], kTaskWords[i % 16]);
    }
    put_file(path("sentences.txt"), sentences);
    succeed({"data", "tokenize", "--split-sentences", "--tokenizer", path("words"), "--out", path("sentences"),
             path("sentences.txt")});
  }

  Words train(const Words& more) const {
    const Words words = words_of(
        "train --model-type bert --num-layers 2 --hidden-size 16 --num-attention-heads 2 --layernorm-placement post "
        "--seq-length 20 --split 2,1 --micro-batch-size 4 --train-iters 3 --eval-iters 1000 --lr 1e-2 --peak-tflops 1 "
        "--mask-prob 0.3 --json -");
    return with(with(words, {"--tokenizer", path("words"), "--data-path", path("sentences"), "--save", path("run")}),
                more);
  }
  Words eval_loss(const std::string& model, const Words& more = {}) const {
    return with({"eval", "loss", "--load", path(model), "--data-path", path("sentences"), "--split", "2,1"}, more);
  }
};

TEST_F(MaskedWords, TheLossIsThatOfTrainingsValidation) {
  const Outcome outcome = must(train({"--seed", "7"}));
  const double expected = Json::parse(outcome.output)["validation_loss"].get<double>();
  const auto json = json_of(eval_loss("run"));
  const double loss = json["loss"].get<double>();
  EXPECT_NEAR(loss + json["order_loss"].get<double>(), expected, 1e-5 * expected) << "fp32, in other batches";
  EXPECT_NEAR(json["perplexity"].get<double>(), std::exp(loss), 1e-9 * std::exp(loss));
  EXPECT_GT(json["targets"].get<int>(), 30);
  const auto shared = json_of(eval_loss("run", {"--dp", "2", "--tp", "2", "--micro-batch-size", "3"}));
  EXPECT_NEAR(shared["loss"].get<double>(), loss, 1e-5 * loss);
  EXPECT_EQ(shared["targets"], json["targets"]);
  EXPECT_EQ(shared["order_accuracy"], json["order_accuracy"]);
  EXPECT_NE(json_of(eval_loss("run", {"--seed", "8"}))["loss"], json["loss"]) << "other masks";
  succeed({"convert", "--from", "teratron", "--to", "hf", path("run"), path("hf")});
  const auto exported = json_of(eval_loss("hf", {"--seq-length", "20", "--seed", "7"}));
  EXPECT_LT(exported["targets"], json["targets"]) << "a folder does not know of 0.3";
  EXPECT_THAT(refused(eval_loss("run", {"--baselines"})), HasSubstr("leave out --baselines"));
  EXPECT_THAT(refused(eval_loss("run", {"--seq-length", "21"})), HasSubstr("is more than the 20 positions"));
}

TEST_F(MaskedWords, ThePlacesOfMasksAreFilledInOrder) {
  succeed(train({}));
  const Words fill = {"fill-mask", "--load", path("run"), "--top-k", "3"};
  const Outcome shown = must(with(fill, {"--prompt", "rain [MASK] snow"}));
  EXPECT_EQ(std::ranges::count(shown.output, '\n'), 4) << shown.output;
  put_file(path("texts"), "rain [MASK] snow\n\n[MASK] [MASK] sun\n");
  const std::vector<Json> lines = json_lines_of(succeed(with(fill, {"--prompts", path("texts"), "--json", "-"})));
  ASSERT_EQ(lines.size(), 2U);
  const Json& first = lines[0];
  EXPECT_EQ(first["masks"][0]["position"], 2);
  ASSERT_EQ(first["masks"][0]["tokens"].size(), 3U);
  EXPECT_GE(first["masks"][0]["tokens"][0]["score"], first["masks"][0]["tokens"][1]["score"]);
  EXPECT_THAT(shown.output, HasSubstr(first["masks"][0]["tokens"][0]["token_str"].get<std::string>()));
  EXPECT_EQ(lines[1]["masks"].size(), 2U);
  EXPECT_THAT(refused(with(fill, {"--prompt", "rain"})), HasSubstr("--prompt has no [MASK]"));
  EXPECT_THAT(refused(with(fill, {"--prompt", std::string(99, '.') + "[MASK]"})),
              HasSubstr("has 102 tokens, with those around it, and the model 20 positions"));
  EXPECT_THAT(refused(fill), HasSubstr("give a text with [MASK] in it by --prompt"));
}

}  // namespace
}  // namespace teratron::testing
