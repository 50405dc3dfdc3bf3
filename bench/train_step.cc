// Teratron's side of bench/train_cpu, bench/adapters, bench/layouts, bench/scaling, bench/pipeline and bench/gpu: full
// training steps of a GPT-2, a Llama or a Qwen 2, or of adapters beside one, on one batch of random tokens, by thread
// ranks, or mpirun's processes, in the layout given. Takes turns with bench/peers/pytorch_gpt2.py and speaks as it
// does: for each line "step N" on standard input it does N steps (forward, loss, backward, clip, AdamW) and prints
// {"seconds": [..], "processor_seconds": [..], ...}; "quit" ends it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <vector>

#include "base/host/resources.h"
#include "base/host/threads.h"
#include "comm/launch.h"
#include "model/family.h"
#include "model/language_model.h"
#include "model/presets.h"
#include "optim/adamw.h"
#include "pipeline/generators.h"
#include "pipeline/token_slices.h"
#include "program.h"
#include "tensor/weight_tiles.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Of all threads of this process; other programs on the machine hardly change a difference.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Options {
  std::map<std::string, double> numbers = {
      {"layers", 12},      {"hidden", 768},  {"heads", 12},   {"seq", 1024}, {"vocab", 50257}, {"batch", 1},
      {"threads", 2},      {"dropout", 0},   {"tp", 1},       {"dp", 1},     {"pp", 1},        {"sp", 0},
      {"zero", 0},         {"bf16", 0},      {"fp16", 0},     {"cuda", 0},   {"cudnn", 0},     {"micro", 0},
      {"logits_chunk", 0}, {"recompute", 0}, {"schedule", 1}, {"graphs", 1}, {"llama", 0},     {"qwen", 0},
      {"key_heads", 0},    {"ffn", 0},       {"tallies", 0},  {"rank", 0},   {"frozen", 0},    {"keep", 1},
      {"hopper", 0},       {"packed", 0}};
  std::vector<std::int64_t> cells;  // layers of each
  pipeline::TokenSlices slices;     // lengths, or micro-batches of their own sizes; neither: sequences run whole

  double at(const std::string& name) const { return numbers.at(name); }
  int count(const std::string& name) const { return static_cast<int>(at(name)); }
};

Options read_options(std::span<char*> arguments) {
  Options options;
  for (std::size_t i = 1; i + 1 < arguments.size(); i += 2) {
    const std::string name = std::string(arguments[i]).substr(2);
    if (name == "slices") {
      options.slices = pipeline::parse_token_slices("--slices", arguments[i + 1]);
    } else if (name == "cells") {
      std::istringstream text(arguments[i + 1]);
      for (std::string number; std::getline(text, number, ',');) options.cells.push_back(std::atoll(number.c_str()));
    } else if (options.numbers.contains(name)) {
      options.numbers[name] = std::atof(arguments[i + 1]);
    } else {
      throw_user_error("there is no option --{}", name);
    }
  }
  return options;
}

// Sequences of each micro-batch of a copy of the model: as the slices say, else `micro` of them (0: all that there
// are).
std::vector<std::int64_t> micro_batches_of(const Options& o) {
  std::vector<std::int64_t> sizes;
  for (const pipeline::MicroBatchCut& cut : o.slices.cuts) sizes.push_back(cut.sequences);
  if (!sizes.empty()) return sizes;
  const auto batch = static_cast<std::int64_t>(o.at("batch") / o.at("dp"));
  const std::int64_t size = o.at("micro") > 0 ? o.count("micro") : batch;
  return std::vector<std::int64_t>(static_cast<std::size_t>(batch / size), size);
}

pipeline::Schedule schedule_of(const Options& o) {
  pipeline::ScheduleSize size{.stages = o.count("pp"), .micro_batches = static_cast<int>(micro_batches_of(o).size())};
  if (o.slices.cuts.empty()) {
    size.slices = std::max<int>(1, static_cast<int>(o.slices.lengths.size()));
  } else {
    size.set_slices(o.slices.slices_each());
  }
  return pipeline::make_schedule(static_cast<pipeline::ScheduleKind>(o.count("schedule")), size);
}

std::vector<pipeline::MicroBatchCut> cuts_of(const Options& o) {
  return o.slices.cuts.empty() ? cut_alike(micro_batches_of(o).front(), o.slices.lengths) : o.slices.cuts;
}

std::optional<WeightPacking> packing_of(const Options& o) {
  if (o.at("packed") == 0) return std::nullopt;
  const DType dtype = o.at("bf16") > 0 ? DType::kBF16 : o.at("fp16") > 0 ? DType::kF16 : DType::kF32;
  return WeightPacking{.processor = {.compute_dtype = dtype}};
}

// One rank's.
class TrainingStep {
 public:
  TrainingStep(const Options& o, const LaunchEnvironment& environment, Communicator& world)
      : sizes_(micro_batches_of(o)),
        batch_(std::accumulate(sizes_.begin(), sizes_.end(), std::int64_t{0})),
        seq_(static_cast<std::int64_t>(o.at("seq"))),
        backend_(make_backend(o, environment)),
        runner_(*backend_, config_of(o),
                {.batch = sizes_.front(),
                 .tokens = seq_,
                 .logits_chunk = static_cast<std::int64_t>(o.at("logits_chunk")),
                 .weight_tiles = o.at("frozen") > 0 ? std::optional(DType::kQ8Tile) : std::nullopt,
                 .schedule = schedule_of(o),
                 .cuts = cuts_of(o),
                 .recompute = static_cast<Recompute>(o.at("recompute")),
                 .kept_layers = o.at("keep") > 0 ? std::nullopt : std::optional<std::int64_t>(0),
                 .packed_weights = packing_of(o),
                 .sequence_parallel = o.at("sp") > 0,
                 .shard_optimizer = o.at("zero") > 0,
                 .tallies = o.at("tallies") > 0,
                 .optimizer = std::make_shared<AdamWOptimizer>(AdamWSettings{.beta2 = 0.95, .weight_decay = 0.1}),
                 .cell_layers = o.cells},
                std::make_shared<Mesh>(make_mesh(world, mesh_of(o)))),
        parameters_(runner_.parameters()) {
    runner_.allocate();
    initialize();
    const int replica = runner_.mesh().data->rank();
    std::mt19937 random(1 + static_cast<unsigned>(replica));
    const auto tokens = static_cast<std::size_t>(batch_ * seq_);
    for (std::size_t i = 0; i < tokens; ++i) {
      ids_.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(runner_.config().vocab_size)));
    }
    targets_.assign(ids_.begin() + 1, ids_.end());
    targets_.push_back(ids_.front());
    weights_.assign(tokens, 1.0F / static_cast<float>(o.at("batch") * o.at("seq")));
  }

  // Seconds of a step, of its forward and backward passes, and of the processors in it.
  struct Times {
    double step = 0, passes = 0, processor = 0;
  };
  Times run(double& loss) {
    const Clock::time_point start = Clock::now();
    const double processor_start = processor_seconds();
    loss = runner_.forward_backward(micro_batches()).total();
    if (StepTallies* const tallies = runner_.tallies()) tallies->read();
    const double passes = seconds_since(start);
    const double norm = gradient_norm(*backend_, parameters_, runner_.mesh());
    runner_.update({.learning_rate = 1e-4, .update = ++update_, .gradient_norm = norm});
    backend_->wait();
    return {seconds_since(start), passes, processor_seconds() - processor_start};
  }

  double flops() const {
    return static_cast<double>(batch_ * runner_.mesh().data->size() * seq_) *
           runner_.config().training_flops_per_token(seq_);
  }
  std::int64_t planned_bytes() const { return runner_.memory().bytes(); }
  std::string instructions() const { return text_of_instructions(*backend_); }

  static MeshShape mesh_of(const Options& o) {
    return {.tensor = o.count("tp"), .pipeline = o.count("pp"), .data = o.count("dp")};
  }

 private:
  std::vector<MicroBatch> micro_batches() const {
    std::vector<MicroBatch> all;
    std::int64_t done = 0;
    for (const std::int64_t size : sizes_) {
      const auto begin = static_cast<std::size_t>(done * seq_), count = static_cast<std::size_t>(size * seq_);
      all.push_back({.ids = std::span(ids_).subspan(begin, count),
                     .targets = std::span(targets_).subspan(begin, count),
                     .weights = std::span(weights_).subspan(begin, count),
                     .batch = size,
                     .tokens = seq_,
                     .first_sample = batch_ * runner_.mesh().data->rank() + done,
                     .iteration = static_cast<std::uint32_t>(update_)});
      done += size;
    }
    return all;
  }
  static ModelConfig config_of(const Options& o) {
    ModelConfig config;
    if (o.at("llama") > 0) find_model_preset("llama-15m").apply_to(config);  // tied; the sizes follow
    if (o.at("qwen") > 0) find_model_preset("qwen2.5-0.5b").apply_to(config);
    config.num_key_value_heads = o.count("key_heads");
    config.intermediate_size = o.count("ffn");
    config.num_layers = static_cast<std::int64_t>(o.at("layers"));
    config.hidden_size = static_cast<std::int64_t>(o.at("hidden"));
    config.num_attention_heads = static_cast<std::int64_t>(o.at("heads"));
    config.vocab_size = static_cast<std::int64_t>(o.at("vocab"));
    config.max_position_embeddings = static_cast<std::int64_t>(o.at("seq"));
    config.hidden_dropout = config.attention_dropout = o.at("dropout");
    if (o.at("rank") > 0) {  // LoRA beside every product of a layer
      config.adapters.rank = o.count("rank");
      for (const AdapterTarget& target : config.family().adapter_targets) config.adapters.targets |= target.targets;
    }
    return config;
  }

  // Processes of a host take its GPUs in turn, as many as there are.
  static std::unique_ptr<Backend> make_backend(const Options& o, const LaunchEnvironment& environment) {
    const DType dtype = o.at("bf16") > 0 ? DType::kBF16 : o.at("fp16") > 0 ? DType::kF16 : DType::kF32;
    if (o.at("cuda") > 0) {
      return make_cuda_backend({.compute_dtype = dtype,
                                .device = environment.process % std::max(1, cuda_devices()),
                                .channels = environment.kind != RankKind::kThreads,
                                .graphs = o.at("graphs") > 0,
                                .cudnn_attention = o.at("cudnn") > 0 ? KernelUse::kRequired : KernelUse::kOff,
                                .hopper_attention = o.at("hopper") > 0 ? KernelUse::kRequired : KernelUse::kOff});
    }
    return make_cpu_backend({.compute_dtype = dtype});
  }

  // Weights in tiles are encoded from random rows.
  void initialize() {
    std::vector<Parameter*> drawn = parameters_;
    std::erase_if(drawn, [](const Parameter* parameter) { return parameter->widens_tiles; });
    runner_.clear_slots();
    runner_.initialize(1, drawn);
    std::mt19937 random(1);
    std::uniform_real_distribution<float> values(-0.035F, 0.035F);
    for (Parameter* const parameter : parameters_) {
      if (!parameter->widens_tiles) continue;
      const std::int64_t columns = parameter->shape[1];
      std::vector<float> rows(static_cast<std::size_t>(kTileRows * columns));
      for (std::int64_t row = 0; row < parameter->value.dim(0); ++row) {
        std::ranges::generate(rows, [&] { return values(random); });
        const TensorRef tiles = parameter->value.slice(0, row, row + 1);
        std::vector<std::byte> bytes(static_cast<std::size_t>(tiles.bytes()));
        encode_tiles(tiles.dtype, rows, columns, bytes);
        backend_->upload(tiles, bytes.data());
      }
    }
  }

  std::vector<std::int64_t> sizes_;  // of micro-batches, in sequences; the first is the largest
  std::int64_t batch_, seq_;
  std::unique_ptr<Backend> backend_;
  LanguageModel runner_;
  std::vector<Parameter*> parameters_;
  std::vector<std::int32_t> ids_, targets_;
  std::vector<float> weights_;
  std::int64_t update_ = 0;
};

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

// The next "step N" as N, read by rank 0 and sent to all; 0: the end.
int steps_wanted(Communicator& world) {
  double count = 0;
  if (std::string word; world.rank() == 0 && std::cin >> word && word != "quit") {
    if (word != "step" || !(std::cin >> count)) throw_user_error("want \"step N\" or \"quit\", not '{}'", word);
  }
  world.all_reduce_host({&count, 1});
  return static_cast<int>(count);
}

void serve_steps(const Options& options, const LaunchEnvironment& environment, Communicator& world) {
  TrainingStep training(options, environment, world);
  double loss = 0;
  for (int warmup = 0; warmup < 2; ++warmup) training.run(loss);
  const bool speaks = world.rank() == 0;
  if (speaks) {
    say(
        fmt::format("{{\"ready\": true, \"instructions\": \"{}\", \"model_flops_per_step\": {}, \"planned_bytes\": {}, "
                    "\"peak_rss_bytes\": {}}}",
                    training.instructions(), training.flops(), training.planned_bytes(), peak_memory_bytes()));
  }
  while (const int count = steps_wanted(world)) {
    std::vector<double> seconds, passes, processor;
    for (int i = 0; i < count; ++i) {
      const auto times = training.run(loss);
      seconds.push_back(times.step);
      passes.push_back(times.passes);
      processor.push_back(times.processor);
    }
    if (speaks) {
      say(fmt::format(
          "{{\"seconds\": [{}], \"passes\": [{}], \"processor_seconds\": [{}], \"peak_rss_bytes\": {}, \"loss\": {}}}",
          fmt::join(seconds, ", "), fmt::join(passes, ", "), fmt::join(processor, ", "), peak_memory_bytes(), loss));
    }
  }
}

int run(std::span<char*> arguments) {
  const Options options = read_options(arguments);
  set_thread_count(static_cast<int>(options.at("threads")));
  // Thread ranks, or processes of mpirun.
  const LaunchEnvironment environment =
      detect_launch(options.at("cuda") > 0 ? TensorMemory::kDevice : TensorMemory::kHost);
  run_ranks(environment, TrainingStep::mesh_of(options).ranks(),
            [&](Communicator& world) { serve_steps(options, environment, world); });
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) {
  const int code = teratron::run_program(count, arguments, teratron::run);
  teratron::leave_launch(code);
  return code;
}
