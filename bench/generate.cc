// Milliseconds a token of generation, one token after another, of GPT-2 models of the paper's sizes with random
// weights: on a GPU with CUDA graphs and without, taking turns, medians.
//   bench_generate [cpu|cuda] [tiny | LAYERS HIDDEN HEADS]...    `tiny` is for tests of this program
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/median.h"
#include "model/language_model.h"
#include "program.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRounds = 5;
constexpr std::int64_t kPrompt = 64;  // tokens of the context at once

struct Sizes {
  std::int64_t layers, hidden, heads, vocab = 50257;
  std::int64_t context = 512, tokens = 100;  // before the first token that is timed, and timed
};
constexpr Sizes kTiny = {.layers = 2, .hidden = 64, .heads = 2, .vocab = 320, .context = kPrompt, .tokens = 3};

class Generation {
 public:
  Generation(const Sizes& sizes, std::unique_ptr<Backend> backend)
      : sizes_(sizes),
        backend_(std::move(backend)),
        runner_(*backend_,
                {.num_layers = sizes.layers,
                 .hidden_size = sizes.hidden,
                 .num_attention_heads = sizes.heads,
                 .vocab_size = sizes.vocab,
                 .max_position_embeddings = 1024},
                {.purpose = Purpose::kGeneration, .tokens = kPrompt, .logits_chunk = 1}),
        logits_(static_cast<std::size_t>(sizes.vocab)) {
    runner_.allocate();
    runner_.initialize(1);
    run(0, sizes.context, kPrompt);
  }

  // Seconds a token, of those after the context.
  double seconds_a_token() {
    run(sizes_.context, 3, 1);  // what is done a first time is not timed
    const Clock::time_point start = Clock::now();
    run(sizes_.context, sizes_.tokens, 1);
    return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(sizes_.tokens);
  }

 private:
  void run(std::int64_t first, std::int64_t count, std::int64_t at_once) {
    const std::vector<std::int32_t> ids(static_cast<std::size_t>(at_once), 7);
    for (std::int64_t at = first; at < first + count; at += at_once) {
      const auto position = static_cast<std::int32_t>(at);
      if (at_once == 1) {
        runner_.next_logits(ids, {&position, 1}, logits_);
      } else {
        runner_.logits(ids, at, 1, logits_);
      }
    }
  }

  const Sizes sizes_;
  std::unique_ptr<Backend> backend_;
  LanguageModel runner_;
  std::vector<float> logits_;
};

void measure(const Sizes& sizes, bool cuda) {
  std::vector<std::unique_ptr<Generation>> sides;
  for (const bool graphs : {true, false}) {
    if (!cuda && !graphs) break;
    auto backend = cuda ? make_cuda_backend({.compute_dtype = DType::kBF16, .graphs = graphs}) : make_cpu_backend();
    sides.push_back(std::make_unique<Generation>(sizes, std::move(backend)));
  }
  std::vector<std::vector<double>> seconds(sides.size());
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t side = 0; side < sides.size(); ++side) seconds[side].push_back(sides[side]->seconds_a_token());
  }
  fmt::print("| {} x {}, {} heads | {:.3f} |", sizes.layers, sizes.hidden, sizes.heads, 1e3 * median(seconds[0]));
  if (cuda) fmt::print(" {:.3f} | {:.2f} |", 1e3 * median(seconds[1]), median(seconds[1]) / median(seconds[0]));
  fmt::print("\n");
  std::fflush(stdout);
}

int run(std::span<char*> arguments) {
  const bool cuda = arguments.size() > 1 && std::string_view(arguments[1]) == "cuda";
  std::vector<Sizes> all;
  const bool tiny = arguments.size() > 2 && std::string_view(arguments[2]) == "tiny";
  if (tiny) all = {kTiny};
  for (std::size_t i = 2; !tiny && i + 2 < arguments.size(); i += 3) {
    all.push_back({std::atoll(arguments[i]), std::atoll(arguments[i + 1]), std::atoll(arguments[i + 2])});
  }
  if (all.empty()) all = {{12, 768, 12}, {24, 1024, 16}, {40, 1536, 16}};
  fmt::print("| {}, token by token after {} | ms a token |{}\n|---|---|{}\n", cuda ? "bf16" : "fp32",
             all.front().context, cuda ? " without graphs | times |" : "", cuda ? "---|---|" : "");
  for (const Sizes& sizes : all) measure(sizes, cuda);
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::run); }
