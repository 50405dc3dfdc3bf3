// Teratron's side of bench/train_cpu and bench/layouts: full GPT-2 training steps on one batch of random tokens, by
// thread ranks in the layout given. Takes turns with bench/peers/pytorch_gpt2.py and speaks as it does: for each line
// "step N" on standard input it does N steps (forward, loss, backward, clip, AdamW) and prints {"seconds": [..], ...};
// "quit" ends it.
//
// With --gemm 1 it builds no model (its memory would count) and measures instead, for each line "gemm", the rate of
// oneDNN's matrix product at the best of the model's shapes and a large square.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <vector>

#include "base/threads.h"
#include "comm/launch.h"
#include "model/gpt2.h"
#include "optim/adamw_optimizer.h"
#include "telemetry/peak_memory.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

using Options = std::map<std::string, double>;

Options read_options(std::span<char*> arguments) {
  Options options = {{"layers", 12}, {"hidden", 768}, {"heads", 12},  {"seq", 1024}, {"vocab", 50257},
                     {"batch", 1},   {"threads", 2},  {"dropout", 0}, {"gemm", 0},   {"tp", 1},
                     {"dp", 1},      {"sp", 0},       {"zero", 0},    {"bf16", 0},   {"recompute", 0}};
  for (std::size_t i = 1; i + 1 < arguments.size(); i += 2) {
    const std::string name = std::string(arguments[i]).substr(2);
    if (!options.contains(name)) throw_user_error("there is no option --{}", name);
    options[name] = std::atof(arguments[i + 1]);
  }
  return options;
}

// One rank's.
class TrainingStep {
 public:
  TrainingStep(const Options& o, Communicator& world)
      : batch_(static_cast<std::int64_t>(o.at("batch") / o.at("dp"))),
        seq_(static_cast<std::int64_t>(o.at("seq"))),
        backend_(make_cpu_backend({.compute_dtype = o.at("bf16") > 0 ? DType::kBF16 : DType::kF32})),
        runner_(*backend_, config_of(o),
                {.batch = batch_,
                 .tokens = seq_,
                 .recompute = static_cast<Recompute>(o.at("recompute")),
                 .sequence_parallel = o.at("sp") > 0,
                 .shard_optimizer = o.at("zero") > 0},
                std::make_shared<Mesh>(make_mesh(world, mesh_of(o)))),
        parameters_(runner_.parameters()) {
    runner_.allocate();
    runner_.initialize(1);
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

  double run(double& loss) {
    const Clock::time_point start = Clock::now();
    loss = runner_.forward_backward({.ids = ids_,
                                     .targets = targets_,
                                     .weights = weights_,
                                     .batch = batch_,
                                     .tokens = seq_,
                                     .first_sample = batch_ * runner_.mesh().data->rank(),
                                     .iteration = static_cast<std::uint32_t>(update_)});
    const double norm = gradient_norm(*backend_, parameters_, runner_.mesh());
    adamw_update(*backend_, parameters_, {.beta2 = 0.95, .weight_decay = 0.1},
                 {.learning_rate = 1e-4, .update = ++update_, .gradient_norm = norm});
    runner_.gather_weights();
    return seconds_since(start);
  }

  double flops() const {
    return static_cast<double>(batch_ * runner_.mesh().data->size() * seq_) *
           runner_.config().training_flops_per_token(seq_);
  }
  std::int64_t planned_bytes() const { return runner_.memory().bytes(); }

  static MeshShape mesh_of(const Options& o) {
    return {.tensor = static_cast<int>(o.at("tp")), .data = static_cast<int>(o.at("dp"))};
  }

 private:
  static ModelConfig config_of(const Options& o) {
    ModelConfig config;
    config.num_layers = static_cast<std::int64_t>(o.at("layers"));
    config.hidden_size = static_cast<std::int64_t>(o.at("hidden"));
    config.num_attention_heads = static_cast<std::int64_t>(o.at("heads"));
    config.vocab_size = static_cast<std::int64_t>(o.at("vocab"));
    config.max_position_embeddings = static_cast<std::int64_t>(o.at("seq"));
    config.hidden_dropout = config.attention_dropout = o.at("dropout");
    return config;
  }

  std::int64_t batch_, seq_;
  std::unique_ptr<Backend> backend_;
  Gpt2Runner runner_;
  std::vector<Parameter*> parameters_;
  std::vector<std::int32_t> ids_, targets_;
  std::vector<float> weights_;
  std::int64_t update_ = 0;
};

// GFLOP/s of out[m,n] = a[m,k] b[n,k]^T, the median of a few: a step's time is a median too.
double gemm_rate(std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::vector<float> a(static_cast<std::size_t>(m * k), 0.5F), b(static_cast<std::size_t>(n * k), 0.25F);
  std::vector<float> out(static_cast<std::size_t>(m * n));
  std::array<double, 7> seconds{};
  for (double& value : seconds) {
    const Clock::time_point start = Clock::now();
    dnnl_sgemm('N', 'T', m, n, k, 1, a.data(), k, b.data(), k, 0, out.data(), n);
    value = seconds_since(start);
  }
  std::ranges::nth_element(seconds, seconds.begin() + seconds.size() / 2);
  return 2e-9 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / seconds[seconds.size() / 2];
}

// Of the shape that does best.
double best_gemm_rate(const Options& o) {
  const auto tokens = static_cast<std::int64_t>(o.at("batch") * o.at("seq"));
  const auto h = static_cast<std::int64_t>(o.at("hidden"));
  return std::max({gemm_rate(2048, 2048, 2048), gemm_rate(tokens, 3 * h, h), gemm_rate(tokens, 4 * h, h),
                   gemm_rate(tokens, h, 4 * h)});
}

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void serve_gemm(const Options& options) {
  say("{\"ready\": true}");
  for (std::string word; std::cin >> word && word != "quit";) {
    if (word != "gemm") throw_user_error("want \"gemm\" or \"quit\", not '{}'", word);
    say(fmt::format("{{\"gflops\": {}}}", best_gemm_rate(options)));
  }
}

// The next "step N" as N, read by rank 0 and told to all; 0: the end.
int steps_wanted(Communicator& world) {
  double count = 0;
  if (std::string word; world.rank() == 0 && std::cin >> word && word != "quit") {
    if (word != "step" || !(std::cin >> count)) throw_user_error("want \"step N\" or \"quit\", not '{}'", word);
  }
  world.all_reduce_host({&count, 1});
  return static_cast<int>(count);
}

void serve_steps(const Options& options, Communicator& world) {
  TrainingStep training(options, world);
  double loss = 0;
  for (int warmup = 0; warmup < 2; ++warmup) training.run(loss);
  const bool speaks = world.rank() == 0;
  if (speaks) {
    say(fmt::format("{{\"ready\": true, \"model_flops_per_step\": {}, \"planned_bytes\": {}, \"peak_rss_bytes\": {}}}",
                    training.flops(), training.planned_bytes(), peak_memory_bytes()));
  }
  while (const int count = steps_wanted(world)) {
    std::vector<double> seconds;
    for (int i = 0; i < count; ++i) seconds.push_back(training.run(loss));
    if (speaks) {
      say(fmt::format("{{\"seconds\": [{}], \"peak_rss_bytes\": {}, \"loss\": {}}}", fmt::join(seconds, ", "),
                      peak_memory_bytes(), loss));
    }
  }
}

int run(std::span<char*> arguments) {
  const Options options = read_options(arguments);
  set_thread_count(static_cast<int>(options.at("threads")));
  if (options.at("gemm") > 0) {
    serve_gemm(options);
  } else {
    run_ranks({}, TrainingStep::mesh_of(options).ranks(), [&](Communicator& world) { serve_steps(options, world); });
  }
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) {
  try {
    return teratron::run({arguments, static_cast<std::size_t>(count)});
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}
