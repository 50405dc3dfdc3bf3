// Prompts before a model continues them.

#include "cli/tiny_training.h"
#include "tokenizer/tokenizer.h"

namespace teratron::testing {
namespace {

TEST(Prompt, ItsSpecialTokensAreTokensWhereverTheyStand) {
  const TinyTraining training(1000);
  succeed(training.command(
      {"--train-iters", "1", "--num-layers", "1", "--hidden-size", "16", "--save", training.path("run")}));
  const Tokenizer tokenizer = Tokenizer::load(training.path("tokenizer"));
  const auto tokens_of = [&](const std::string& prompt) {
    return json_of({"generate", "--load", training.path("run"), "--max-new-tokens", "1", "--prompt", prompt})
        .at("prompt_tokens")
        .get<std::vector<std::int32_t>>();
  };
  std::vector<std::int32_t> expected = tokenizer.encode(" the rank");
  expected.insert(expected.begin(), *tokenizer.end_of_text());
  EXPECT_EQ(tokens_of("<|endoftext|> the rank"), expected);
  expected.erase(expected.begin());
  expected.push_back(*tokenizer.end_of_text());
  EXPECT_EQ(tokens_of(" the rank<|endoftext|>"), expected);
  EXPECT_EQ(tokens_of("<|endoftext"), tokenizer.encode("<|endoftext"));
}

}  // namespace
}  // namespace teratron::testing
