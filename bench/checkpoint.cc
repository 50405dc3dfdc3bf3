// Teratron's side of bench/checkpoint: saves of a GPT-2 with AdamW's moments, the whole save with checksums and fsync.
// For each line "save" on standard input it saves once and prints {"seconds": ..}.
//   bench_checkpoint FOLDER [LAYERS HIDDEN HEADS]      FOLDER: on the disk that is to be written to
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "base/host/monotonic_clock.h"
#include "base/host/threads.h"
#include "checkpoint/native/checkpoint.h"
#include "model/language_model.h"
#include "optim/adamw.h"
#include "program.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

ModelConfig config_of(std::span<char*> sizes) {
  const auto size = [&](std::size_t i, std::int64_t usual) { return sizes.size() > i ? std::atoll(sizes[i]) : usual; };
  return {.num_layers = size(0, 12),
          .hidden_size = size(1, 768),
          .num_attention_heads = size(2, 12),
          .vocab_size = 50257,
          .max_position_embeddings = 1024,
          .hidden_dropout = 0,
          .attention_dropout = 0};
}

int run(std::span<char*> arguments) {
  if (arguments.size() < 2) throw_user_error("bench_checkpoint needs a folder to save to");
  const fs::path root = arguments[1];
  set_thread_count(2);
  const auto backend = make_cpu_backend({.compute_dtype = DType::kF32});
  LanguageModel model(*backend, config_of(arguments.subspan(2)),
                      {.tokens = 16, .optimizer = std::make_shared<AdamWOptimizer>(AdamWSettings{})});
  model.allocate();
  model.initialize(1);
  const auto parameters = model.all_parameters();
  fmt::print("{{\"ready\": true}}\n");
  std::fflush(stdout);
  TrainingState state;
  for (std::string word; std::cin >> word && word == "save";) {
    state.iteration = 1 - state.iteration;  // two in turn, so that what is replaced is deleted, as --keep-last 1 does
    const double begin = monotonic_seconds();
    save_checkpoint(root, model.config(), parameters, *backend, state, {.keep_last = 1});
    fmt::print("{{\"seconds\": {}}}\n", monotonic_seconds() - begin);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::run); }
