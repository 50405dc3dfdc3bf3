// Trains a small GPT-2 on a text. It has all of `teratron train`: the flags, ranks as threads or processes, the lock on
// its folder, progress, metrics.jsonl, an orderly end by signals. The same command, typed again, goes on where it was:
//   train_gpt2 TEXT FOLDER --seq-length 32 --train-iters 30 --lr 0.003 --tp 2
#include <teratron/base/error.h>
#include <teratron/checkpoint/native/folders.h>
#include <teratron/data/text/tokenize.h>
#include <teratron/run/pretraining.h>
#include <teratron/runtime/program.h>
#include <teratron/tokenizer/bpe/bpe_trainer.h>

#include <cstdio>

using namespace teratron;
namespace fs = std::filesystem;

// Beside the run's own observers: a line an update on standard output.
struct LossPrinter : TrainingObserver {
  void iteration(const IterationReport& report) override {
    std::printf("iteration %3d  loss %.4f\n", static_cast<int>(report.iteration), report.loss);
  }
};

void make_corpus(const fs::path& text, const fs::path& folder) {
  const std::string content = read_file(text);
  const Tokenizer tokenizer(train_bpe(std::vector<std::string_view>{content}, {.vocab_size = 300}));
  tokenizer.save(folder);
  tokenize_files(tokenizer, std::vector{text}, folder / "corpus");
}

int main(int argc, char** argv) {
  return run_program([&] {
    if (argc < 3) throw_user_error("usage: train_gpt2 TEXT FOLDER --train-iters N [--flag value ...]");
    const std::string folder = argv[2], run = folder + "/run";
    if (!fs::exists(folder + "/corpus.idx")) make_corpus(argv[1], folder);
    std::vector<std::string> flags = {"--data-path=" + folder + "/corpus", "--tokenizer=" + folder, "--model=tiny",
                                      "--save=" + run};
    if (fs::exists(fs::path(run) / kTrackerFile)) flags.push_back("--load=" + run);
    flags.insert(flags.end(), argv + 3, argv + argc);
    const PretrainingResult result =
        pretrain(read_train_start(flags), [](Run& one) { one.add(std::make_unique<LossPrinter>()); });
    if (result.training.signal != 0) throw EndedBySignal(result.training.signal);
  });
}
