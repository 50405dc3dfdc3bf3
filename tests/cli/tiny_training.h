// A corpus, its tokenizer and the command line of a training of seconds, for tests that run the binary.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "base/lines.h"
#include "base/philox.h"
#include "cli/binary.h"

namespace teratron::testing {

class TinyTraining {
 public:
  explicit TinyTraining(int words = 6000) {
    RandomSequence random(RandomStream{.seed = 5});
    const Words vocabulary = {"the", "rank", "ranks", "layer", "sums", "a", "gradient", "waits", "\n"};
    std::string text;
    for (int i = 0; i < words; ++i) text += " " + vocabulary[random.below(vocabulary.size())];
    write_file_atomically(path("corpus.txt"), text);
    require(
        run_teratron({"tokenizer", "train", "--vocab-size", "280", "--out", path("tokenizer"), path("corpus.txt")}));
    require(run_teratron(
        {"data", "tokenize", "--tokenizer", path("tokenizer"), "--out", path("data"), path("corpus.txt")}));
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  // The words after `teratron`, which end with those given. Dropout is the default, which is on.
  Words command(const Words& more) const {
    Words words = {"train", "--data-path", path("data"), "--tokenizer", path("tokenizer"), "--lr", "0.003"};
    words = with(words, {"--num-layers", "2", "--hidden-size", "64", "--num-attention-heads", "4"});
    words = with(words, {"--seq-length", "32", "--micro-batch-size", "2"});
    return with(words, more);
  }

  // Waits until the program has written a line about an update into the folder of its run, or has ended.
  static void wait_for_update(ChildProgram& program, const std::filesystem::path& run) {
    const fs::path metrics = run / "metrics.jsonl";
    wait_until(program, [&] { return fs::exists(metrics) && fs::file_size(metrics) > 0; });
  }

  // Every loss that a run wrote into its folder, as written.
  static std::vector<double> losses(const std::filesystem::path& run) {
    std::vector<double> result;
    for (const Json& values : json_lines(run / "metrics.jsonl")) {
      if (values.contains("loss")) result.push_back(values.at("loss"));
    }
    return result;
  }

 private:
  static void require(const Outcome& outcome) {
    if (outcome.exit_code != 0) throw std::runtime_error(outcome.errors);
  }

  const TemporaryFolder folder_;
};

// Expects losses that differ by rounding alone. The first updates of AdamW divide gradients by their own size, which
// makes much of it.
inline void expect_near_losses(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-3) << "update " << i + 1;
}

// Lines of JSON with so many documents of random letters.
inline std::string random_documents(int documents, std::uint64_t least_letters, std::uint64_t most_letters) {
  RandomSequence random(RandomStream{.seed = 3});
  std::string lines;
  for (int document = 0; document < documents; ++document) {
    std::string word;
    for (std::uint64_t left = least_letters + random.below(most_letters - least_letters + 1); left > 0; --left) {
      word += static_cast<char>('a' + random.below(6));
    }
    lines += "{\"text\": \"" + word + "\"}\n";
  }
  return lines;
}

// Tests with such a training each, of so many words.
template <int kWords = 6000>
class TrainingCommands : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return training_.path(name); }

  const TinyTraining training_{kWords};
};

}  // namespace teratron::testing
