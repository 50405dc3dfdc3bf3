// Teratron's side of bench/checkpoint: checkpoints of a GPT-2 with AdamW's moments, checksums and fsync included. For
// each line of standard input it saves once, and prints
//   save   {"seconds": ..}, of save_checkpoint
//   copy   {"seconds": .., "write": .., "cpu": ..}: how long a step waits for the copy of --async-save, how long the
//          writing takes then, and the processor's seconds of both
//   memory {"seconds": ..}, of the same threads that copy as many bytes
//   bench_checkpoint FOLDER [LAYERS HIDDEN HEADS]      FOLDER: on the disk that is to be written to
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "base/host/huge_pages.h"
#include "base/host/monotonic_clock.h"
#include "base/host/threads.h"
#include "checkpoint/native/background_save.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/folders.h"
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

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }  // of all threads

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
  const std::int64_t bytes = bytes_of_copied_checkpoint(parameters, DType::kF32);
  BackgroundSave background(bytes);
  const HugePages from(static_cast<std::size_t>(bytes), /*now=*/true),
      to(static_cast<std::size_t>(bytes), /*now=*/true);
  fmt::print("{{\"ready\": true}}\n");
  std::fflush(stdout);
  TrainingState state;
  for (std::string word; std::cin >> word;) {
    state.iteration = 1 - state.iteration;
    const SaveOptions options{.replaces = 1 - state.iteration};
    fs::remove_all(iteration_folder(root, state.iteration));
    const double begin = monotonic_seconds(), cpu = cpu_seconds();
    if (word == "save") {
      save_checkpoint(root, model.config(), parameters, *backend, state, options);
      fmt::print("{{\"seconds\": {}}}\n", monotonic_seconds() - begin);
    } else if (word == "memory") {
      parallel_for(bytes, 1 << 20, [&](std::int64_t first, std::int64_t end) {
        std::memcpy(to.bytes().data() + first, from.bytes().data() + first, static_cast<std::size_t>(end - first));
      });
      fmt::print("{{\"seconds\": {}}}\n", monotonic_seconds() - begin);
    } else {
      background.begin(root, model.config(), parameters, *backend, state, options, model.mesh());
      const double copied = monotonic_seconds();
      background.release();
      background.wait();
      fmt::print("{{\"seconds\": {}, \"write\": {}, \"cpu\": {}}}\n", copied - begin, monotonic_seconds() - copied,
                 cpu_seconds() - cpu);
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::run); }
