// Trains a small GPT-2 on a text and prints the losses. It takes the flags of `teratron train`, as many ranks included:
//   train_gpt2 TEXT FOLDER --seq-length 32 --train-iters 30 --lr 0.003 --tp 2
#include <teratron/data/text/tokenize.h>
#include <teratron/options/reading.h>
#include <teratron/runtime/backend_choice.h>
#include <teratron/runtime/ranks.h>
#include <teratron/tokenizer/bpe/bpe_trainer.h>
#include <teratron/train/trainer.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

using namespace teratron;

struct LossPrinter : TrainingObserver {
  void iteration(const IterationReport& report) override {
    std::printf("iteration %3d  loss %.4f\n", static_cast<int>(report.iteration), report.loss);
  }
};

void make_corpus(const std::filesystem::path& text, const std::filesystem::path& folder) {
  const std::string content = read_file(text);
  const Tokenizer tokenizer(train_bpe(std::vector<std::string_view>{content}, {.vocab_size = 300}));
  tokenizer.save(folder);
  tokenize_files(tokenizer, std::vector{text}, folder / "corpus");
}

void train(const std::string& text, const std::string& folder, const std::vector<std::string>& flags) {
  std::vector<std::string> all = {"--data-path=" + folder + "/corpus", "--tokenizer=" + folder, "--model=tiny"};
  all.insert(all.end(), flags.begin(), flags.end());
  const auto config = read_options<TrainConfig>(all);
  const RankLauncher launcher(config.threads, config.backend);
  launcher.run(config.mesh(), to_toml(config), [&](const Rank& rank) {
    if (rank.is_first()) make_corpus(text, folder);
    rank.world.barrier();
    const TrainingData data = open_training_data(config);
    const std::unique_ptr<Backend> backend = make_backend(config, rank);
    TrainingTask task = make_training_task(config, data, config.vocabulary_size(), rank.mesh->place().tensor);
    Trainer trainer(config, *backend, std::move(task), rank.mesh);
    trainer.start();
    LossPrinter printer;
    TrainingObserver silent;
    trainer.run(rank.is_first() ? printer : silent);
  });
}

int main(int argc, char** argv) {
  try {
    if (argc < 3) throw_user_error("usage: train_gpt2 TEXT FOLDER --train-iters N [--flag value ...]");
    train(argv[1], argv[2], {argv + 3, argv + argc});
    leave_launch(0);  // of mpirun, where that started it
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    leave_launch(2);
    return 2;
  }
}
