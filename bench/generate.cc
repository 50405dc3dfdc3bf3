// Milliseconds a token of generation, one token after another, of GPT-2 models of the paper's sizes with random
// weights: on a GPU with CUDA graphs and without, taking turns, medians.
//   bench_generate [cpu|cuda] [tiny | LAYERS HIDDEN HEADS]...    `tiny` is for tests of this program
// Our side of bench/generation, on the CPU, a line of JSON for each line "run" of standard input: the seconds of a
// prompt, and those of a token of NEW ones after CONTEXT. PRESET is one of `teratron train --model`: 124M,
// smollm2-135m, ..
//   bench_generate serve fp32|bf16|q8_0|q4_0 PRESET PROMPT CONTEXT NEW      (weights of q8_0 and q4_0 are zeros)
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/host/threads.h"
#include "base/median.h"
#include "eval/generation/generator.h"
#include "model/family.h"
#include "model/language_model.h"
#include "model/presets.h"
#include "program.h"
#include "tensor/weight_tiles.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }
constexpr int kRounds = 5;

// A model, the tokens before the first one that is timed, those that are timed, and those of a prompt.
struct Workload {
  ModelConfig model;
  std::int64_t context = 512, tokens = 100, prompt = 0;

  // A token's multiplications, in the layers: `sequence` tokens are computed at once.
  double layer_flops(std::int64_t sequence) const {
    const TransformerLayer layer(model.layer_config(), 0, {});
    return static_cast<double>(model.num_layers) * layer.work().operations(static_cast<double>(sequence), 0);
  }
  double head_flops() const { return 2.0 * static_cast<double>(model.vocab_size * model.hidden_size); }
  // Weights that a token is multiplied with.
  std::int64_t weights() const {
    const TransformerLayer layer(model.layer_config(), 0, {});
    const double of_layers = static_cast<double>(model.num_layers) * layer.work().product_operations();
    return static_cast<std::int64_t>((of_layers + head_flops()) / 2);
  }
};

ModelConfig gpt2(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {.num_layers = layers,
          .hidden_size = hidden,
          .num_attention_heads = heads,
          .hidden_dropout = 0,
          .attention_dropout = 0};
}

ModelConfig model_of(std::string_view preset_name) {
  const ModelPreset& preset = find_model_preset(preset_name);
  ModelConfig model;
  preset.apply_to(model);
  if (!model.family().continues_text) throw_user_error("{} continues no text", preset_name);
  model.vocab_size = preset.vocabulary > 0 ? preset.vocabulary : model.family().usual_vocabulary;
  model.hidden_dropout = model.attention_dropout = 0;
  return model;
}

Workload tiny() {
  Workload workload{.model = gpt2(2, 64, 2), .context = 64, .tokens = 3};
  workload.model.vocab_size = 320;
  return workload;
}

class Generation {
 public:
  Generation(const Workload& workload, std::unique_ptr<Backend> backend, std::optional<DType> tiles = {})
      : workload_(workload),
        backend_(std::move(backend)),
        runner_(*backend_, workload.model,
                {.purpose = Purpose::kGeneration, .tokens = kPromptPiece, .logits_chunk = 1, .weight_tiles = tiles}),
        logits_(static_cast<std::size_t>(workload.model.vocab_size)) {
    runner_.allocate();
    std::vector<Parameter*> drawn;
    for (Parameter* parameter : runner_.parameters()) {
      if (is_tiles(parameter->value.dtype)) {
        backend_->fill_zero(parameter->value);
      } else {
        drawn.push_back(parameter);
      }
    }
    runner_.initialize(1, drawn);
    read(workload.context);
  }

  // Seconds that the prompt takes, up to the logits that follow it.
  double seconds_of_prompt() {
    const Clock::time_point start = Clock::now();
    read(workload_.prompt);
    return seconds_since(start);
  }

  // Seconds a token, of those after the context.
  double seconds_a_token() {
    generate(3);  // what is done a first time is not timed
    const Clock::time_point start = Clock::now();
    generate(workload_.tokens);
    return seconds_since(start) / static_cast<double>(workload_.tokens);
  }

 private:
  // Computes the first tokens of a text.
  void read(std::int64_t count) {
    for (std::int64_t at = 0; at < count; at += kPromptPiece) {
      const std::vector<std::int32_t> ids(static_cast<std::size_t>(std::min(kPromptPiece, count - at)), 7);
      const bool is_last = at + std::ssize(ids) == count;
      runner_.logits(ids, at, is_last ? 1 : 0, std::span(logits_).first(is_last ? logits_.size() : 0));
    }
  }

  void generate(std::int64_t count) {
    constexpr std::int32_t kToken = 7;
    for (std::int64_t at = workload_.context; at < workload_.context + count; ++at) {
      const auto position = static_cast<std::int32_t>(at);
      runner_.next_logits({&kToken, 1}, {&position, 1}, logits_);
    }
  }

  const Workload workload_;
  std::unique_ptr<Backend> backend_;
  LanguageModel runner_;
  std::vector<float> logits_;
};

void measure(const Workload& workload, bool cuda) {
  std::vector<std::unique_ptr<Generation>> sides;
  for (const bool graphs : {true, false}) {
    if (!cuda && !graphs) break;
    auto backend = cuda ? make_cuda_backend({.compute_dtype = DType::kBF16, .graphs = graphs}) : make_cpu_backend();
    sides.push_back(std::make_unique<Generation>(workload, std::move(backend)));
  }
  std::vector<std::vector<double>> seconds(sides.size());
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t side = 0; side < sides.size(); ++side) seconds[side].push_back(sides[side]->seconds_a_token());
  }
  const ModelConfig& model = workload.model;
  fmt::print("| {} x {}, {} heads | {:.3f} |", model.num_layers, model.hidden_size, model.num_attention_heads,
             1e3 * median(seconds[0]));
  if (cuda) fmt::print(" {:.3f} | {:.2f} |", 1e3 * median(seconds[1]), median(seconds[1]) / median(seconds[0]));
  fmt::print("\n");
  std::fflush(stdout);
}

// The forward pass of a training step, layers alone, of one sequence as long as there are positions.
class TrainingForward {
 public:
  TrainingForward(const ModelConfig& model, DType dtype)
      : backend_(make_cpu_backend({.compute_dtype = dtype})),
        model_(*backend_, model, {.purpose = Purpose::kTraining, .batch = 1, .tokens = kTokens}),
        ids_(static_cast<std::size_t>(kTokens), 7),
        weights_(ids_.size(), 1) {
    model_.allocate();
    model_.initialize(1);
    seconds();
  }
  double seconds() {
    const MicroBatch batch{.ids = ids_, .targets = ids_, .weights = weights_, .batch = 1, .tokens = kTokens};
    const Clock::time_point start = Clock::now();
    model_.forward(batch, [](const EndCall&, TensorRef) {});
    return seconds_since(start);
  }
  static constexpr std::int64_t kTokens = 1024;

 private:
  std::unique_ptr<Backend> backend_;
  LanguageModel model_;
  std::vector<std::int32_t> ids_;
  std::vector<float> weights_;
};

// What reading memory costs that lies as tensors do: all of it once, by searches that find nothing.
class MemoryReads {
 public:
  explicit MemoryReads(std::int64_t bytes)
      : backend_(make_cpu_backend()), bytes_(*backend_, DType::kI32, {bytes / size_of(DType::kI32)}), found_(kParts) {
    backend_->fill_zero(bytes_);
  }
  double seconds() {
    const auto* const data = static_cast<const char*>(bytes_.ref().data);
    const std::size_t part = static_cast<std::size_t>(bytes_.ref().bytes()) / kParts;
    const Clock::time_point start = Clock::now();
    run_in_parallel(kParts, [&](std::int64_t chunk) {
      const auto number = static_cast<std::size_t>(chunk);
      if (std::memchr(data + number * part, 1, part) != nullptr) found_[number] = 1;
    });
    const double seconds = seconds_since(start);
    check(std::ranges::count(found_, 1) == 0, "all is read");
    return seconds;
  }

 private:
  static constexpr std::size_t kParts = 64;
  std::unique_ptr<Backend> backend_;
  Tensor bytes_;
  std::vector<int> found_;
};

// Shape from which the other sides make the same model.
std::string described(const ModelConfig& model) {
  return fmt::format(
      R"({{"family": "{}", "layers": {}, "hidden": {}, "heads": {}, "key_heads": {}, "ffn": {}, "vocabulary": {}}})",
      model.family().name, model.num_layers, model.hidden_size, model.num_attention_heads, model.key_value_heads(),
      model.ffn_hidden_size(), model.vocab_size);
}

int serve(std::string_view type, Workload workload) {
  const bool has_tiles = type == "q8_0" || type == "q4_0";
  if (type != "fp32" && type != "bf16" && !has_tiles) {
    throw_user_error("serve takes fp32, bf16, q8_0 or q4_0, not {}", type);
  }
  const DType dtype = type == "bf16" ? DType::kBF16 : DType::kF32;
  const DType weights = type == "q8_0" ? DType::kQ8Tile : type == "q4_0" ? DType::kQ4Tile : dtype;
  const ModelConfig& model = workload.model;
  Generation generation(workload, make_cpu_backend({.compute_dtype = dtype}),
                        has_tiles ? std::optional(weights) : std::nullopt);
  TrainingForward training(model, dtype);
  const std::int64_t weight_bytes = workload.weights() / (has_tiles ? kTileRows * kTileColumns : 1) * size_of(weights);
  MemoryReads reads(weight_bytes);
  fmt::print("{{\"ready\": true, \"weight_bytes\": {}, \"model\": {}}}\n", weight_bytes, described(model));
  std::fflush(stdout);
  const double prompt_flops =
      static_cast<double>(workload.prompt) * workload.layer_flops(workload.prompt) + workload.head_flops();
  const double forward_flops = TrainingForward::kTokens * workload.layer_flops(TrainingForward::kTokens);
  for (std::string line; std::getline(std::cin, line) && line == "run";) {
    const double prompt = generation.seconds_of_prompt(), token = generation.seconds_a_token(), read = reads.seconds(),
                 forward = training.seconds();
    fmt::print("{{\"prompt_s\": {}, \"token_s\": {}, \"read_s\": {}, \"prompt_flops\": {}, \"forward_flops\": {}}}\n",
               prompt, token, read, prompt_flops / prompt, forward_flops / forward);
    std::fflush(stdout);
  }
  return 0;
}

int run(std::span<char*> arguments) {
  if (arguments.size() == 7 && std::string_view(arguments[1]) == "serve") {
    return serve(arguments[2], {.model = model_of(arguments[3]),
                                .context = std::atoll(arguments[5]),
                                .tokens = std::atoll(arguments[6]),
                                .prompt = std::atoll(arguments[4])});
  }
  const bool cuda = arguments.size() > 1 && std::string_view(arguments[1]) == "cuda";
  std::vector<Workload> all;
  const bool is_tiny = arguments.size() > 2 && std::string_view(arguments[2]) == "tiny";
  if (is_tiny) all = {tiny()};
  for (std::size_t i = 2; !is_tiny && i + 2 < arguments.size(); i += 3) {
    all.push_back({gpt2(std::atoll(arguments[i]), std::atoll(arguments[i + 1]), std::atoll(arguments[i + 2]))});
  }
  if (all.empty()) all = {{gpt2(12, 768, 12)}, {gpt2(24, 1024, 16)}, {gpt2(40, 1536, 16)}};
  fmt::print("| {}, token by token after {} | ms a token |{}\n|---|---|{}\n", cuda ? "bf16" : "fp32",
             all.front().context, cuda ? " without graphs | times |" : "", cuda ? "---|---|" : "");
  for (const Workload& workload : all) measure(workload, cuda);
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::run); }
