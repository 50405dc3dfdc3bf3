// The small recipes of configs/ train here and now, by their own settings.

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

class RecipeCommands : public TrainingCommands<> {
 protected:
  // Trains a few updates of short samples: programs with sanitizers run this, too.
  void expect_to_learn(const std::string& recipe, const std::string& data, const std::string& tokenizer) const {
    const std::string file = std::string(TERATRON_SOURCE_DIR) + "/configs/" + recipe;
    const Words cut = words_of(
        "--train-iters 6 --lr-warmup-iters 2 --log-interval 1 --seq-length 32 --global-batch-size 4 "
        "--micro-batch-size 4");
    succeed(with(
        {"train", "--config", file, "--data-path", path(data), "--tokenizer", path(tokenizer), "--save", path("run")},
        cut));
    const std::vector<double> losses = TinyTraining::losses(path("run"));
    ASSERT_EQ(losses.size(), 6U);
    EXPECT_LT(losses.back(), losses.front());
  }
};

TEST_F(RecipeCommands, TheSmallGpt2Learns) { expect_to_learn("gpt2-tiny.toml", "data", "tokenizer"); }

TEST_F(RecipeCommands, TheSmallLlamaLearns) { expect_to_learn("llama-tiny.toml", "data", "tokenizer"); }

TEST_F(RecipeCommands, TheSmallBertLearns) {
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\nThe\nthe\n", documents;
  for (char word = 'a'; word <= 'z'; ++word) vocabulary += std::string(1, word) + "\n";
  RandomSequence random(RandomStream{.seed = 7});
  for (int document = 0; document < 60; ++document) {
    std::string sentences;
    for (int sentence = 0; sentence < 8; ++sentence) {
      sentences += "The";
      for (std::uint64_t word = random.below(5); word < 9; ++word) {
        sentences += fmt::format(" {}", static_cast<char>('a' + word));
      }
      sentences += ". ";
    }
    documents += "{\"text\": \"" + sentences + "\"}\n";
  }
  std::filesystem::create_directories(path("words"));
  write_file_atomically(path("words/vocab.txt"), vocabulary);
  write_file_atomically(path("documents.jsonl"), documents);
  succeed({"data", "tokenize", "--split-sentences", "--tokenizer", path("words"), "--out", path("sentences"),
           path("documents.jsonl")});
  expect_to_learn("bert-tiny.toml", "sentences", "words");
}

}  // namespace
}  // namespace teratron::testing
