// Where a training step's time goes: every Backend call of real GPT-2 steps is timed through a CallObserver, and for
// each operation the fastest of the repeats is added up. The sum, against model FLOPs at oneDNN's own rate for a large
// square product, says how far the step is from being nothing but that product. A second table has the linear layers
// and attention alone. --compute: of the back end that stores activations in 16 bits; the rate is then oneDNN's in
// bf16. --only attention instead compares attention alone, at lengths and head sizes of models, with the rate of our
// own large product.
//
//   bench_ops [--threads N] [--repeats N] [--dropout P] [--only a|b|c] [--compute bf16|f16]
//   bench_ops --only attention [--tokens N] [--threads N] [--repeats N] [--compute bf16|f16]
//
// With one thread the clock is the thread's processor time, which other programs on the machine do not disturb.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/host/threads.h"
#include "model/language_model.h"
#include "onednn_product.h"
#include "program.h"

namespace teratron {
namespace {

struct Options {
  int threads = 2, repeats = 5;
  std::int64_t tokens = 0;  // of attention; 0: several
  double dropout = 0;
  std::string only;
  DType compute = DType::kF32;
};

// Seconds; only differences mean anything.
double now() {
  timespec time{};
  clock_gettime(thread_count() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class Work>
double fastest(int repeats, const Work& work) {
  work();
  double best = 1e9;
  for (int i = 0; i < repeats; ++i) {
    const double start = now();
    work();
    best = std::min(best, now() - start);
  }
  return best;
}

// The fastest time of each call of a step, by its place in the step.
class StepTimer : public CallObserver {
 public:
  void begin(std::string_view operation) override {
    if (next_ == calls_.size()) calls_.push_back({std::string(operation), 1e9});
    start_ = now();
  }
  void end(std::string_view) override {
    double& best = calls_[next_++].seconds;
    best = std::min(best, now() - start_);
  }
  void start_step() { next_ = 0; }

  struct Total {
    int calls = 0;
    double seconds = 0;
  };
  std::map<std::string, Total> totals() const {
    std::map<std::string, Total> totals;
    for (const Call& call : calls_) {
      ++totals[call.operation].calls;
      totals[call.operation].seconds += call.seconds;
    }
    return totals;
  }

 private:
  struct Call {
    std::string operation;
    double seconds;
  };
  std::vector<Call> calls_;
  std::size_t next_ = 0;
  double start_ = 0;
};

struct Configuration {
  std::string name;
  std::int64_t layers, hidden, heads, tokens, vocab, batch;

  ModelConfig model(double dropout) const {
    ModelConfig config;
    config.num_layers = layers;
    config.hidden_size = hidden;
    config.num_attention_heads = heads;
    config.vocab_size = vocab;
    config.max_position_embeddings = tokens;
    config.hidden_dropout = config.attention_dropout = dropout;
    return config;
  }
};

double square_gemm_rate(const Options& options) {
  constexpr std::int64_t kSize = 2048;
  OneDnnProduct product(kSize, kSize, kSize, options.compute == DType::kF32 ? DType::kF32 : DType::kBF16);
  return 1e-9 * product.flops() / fastest(options.repeats, [&] { product.run(); });
}

void time_steps(const Configuration& configuration, const Options& options) {
  const std::int64_t batch = configuration.batch, tokens = configuration.tokens;
  const auto backend = make_cpu_backend({.compute_dtype = options.compute});
  LanguageModel runner(*backend, configuration.model(options.dropout), {.batch = batch, .tokens = tokens});
  runner.allocate();
  runner.initialize(1);
  const std::vector<Parameter*> parameters = runner.parameters();
  std::vector<std::int32_t> ids(static_cast<std::size_t>(batch * tokens));
  std::mt19937 random(1);
  for (auto& id : ids) id = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(configuration.vocab));
  const std::vector<float> weights(ids.size(), 1.0F / static_cast<float>(ids.size()));
  const MicroBatch micro_batch{.ids = ids, .targets = ids, .weights = weights, .batch = batch, .tokens = tokens};

  StepTimer timer;
  backend->set_observer(&timer);
  std::int64_t update = 0;
  double gemm_rate = 0;
  const double whole = fastest(options.repeats, [&] {
    timer.start_step();
    runner.forward_backward(micro_batch);
    const double norm = gradient_norm(*backend, parameters, runner.mesh());
    runner.update({.learning_rate = 1e-4, .update = ++update, .gradient_norm = norm});
  });
  backend->set_observer(nullptr);
  gemm_rate = square_gemm_rate(options);

  const double flops = runner.config().training_flops_per_token(tokens) * static_cast<double>(batch * tokens);
  double sum = 0;
  for (const auto& [operation, total] : timer.totals()) sum += total.seconds;
  fmt::print("\n{}: {:.1f} GFLOP a step; GEMM rate {:.1f} GFLOP/s\n", configuration.name, flops * 1e-9, gemm_rate);
  for (const auto& [operation, total] : timer.totals()) {
    fmt::print("  {:26} {:4} calls {:9.2f} ms {:5.1f} %\n", operation, total.calls, 1e3 * total.seconds,
               100 * total.seconds / sum);
  }
  const auto report = [&](std::string_view what, double seconds) {
    const double rate = flops * 1e-9 / seconds;
    fmt::print("  {:37} {:9.2f} ms {:6.1f} GFLOP/s, {:.1f} % of the GEMM rate\n", what, 1e3 * seconds, rate,
               100 * rate / gemm_rate);
  };
  report("sum of the fastest calls", sum);
  report("fastest step", whole);
}

void time_linear(Backend& backend, std::int64_t rows, std::int64_t outputs, std::int64_t inputs, int repeats) {
  const DType compute = backend.compute_dtype();
  const Tensor x(backend, compute, {rows, inputs}), y(backend, compute, {rows, outputs});
  const Tensor weight(backend, compute, {outputs, inputs});
  const Tensor dweight(backend, backend.accumulation_dtype(), {outputs, inputs});
  const RandomStream stream;
  for (const TensorRef& view : {x.ref(), y.ref(), weight.ref()}) backend.fill_normal(view, stream, 0, 1);
  const double flops = 2e-9 * static_cast<double>(rows * inputs * outputs);
  const double forward = fastest(repeats, [&] { backend.linear_forward({.y = y, .x = x, .weight = weight}); });
  const double input = fastest(repeats, [&] { backend.linear_input_gradient({.dx = x, .dy = y, .weight = weight}); });
  const double weights =
      fastest(repeats, [&] { backend.linear_weight_gradient({.dweight = dweight, .dy = y, .x = x}); });
  fmt::print("  {:5} x {:5} -> {:5}   forward {:6.1f}   input gradient {:6.1f}   weight gradient {:6.1f}\n", rows,
             inputs, outputs, flops / forward, flops / input, flops / weights);
}

struct AttentionSeconds {
  double forward = 0, backward = 0;
};

// Where sequences differ in length, they have half of the tokens on average.
AttentionSeconds time_attention(Backend& backend, const Configuration& configuration, int repeats, bool causal,
                                bool lengths_differ) {
  const std::int64_t heads = configuration.heads, head_size = configuration.hidden / heads;
  const Shape packed{configuration.batch, configuration.tokens, 3, heads, head_size};
  const Shape plain{configuration.batch, configuration.tokens, heads, head_size};
  const DType compute = backend.compute_dtype();
  const Tensor qkv(backend, compute, packed), gradients(backend, compute, packed);
  const Tensor out(backend, compute, plain), dout(backend, compute, plain);
  const Tensor log_sum_exp(backend, backend.accumulation_dtype(), {configuration.batch, heads, configuration.tokens});
  for (const TensorRef& view : {qkv.ref(), dout.ref()}) backend.fill_normal(view, RandomStream(), 0, 1);
  const Tensor lengths(backend, DType::kI32, {configuration.batch});
  std::vector<std::int32_t> counts;
  for (std::int64_t b = 0; b < configuration.batch; ++b) {
    counts.push_back(static_cast<std::int32_t>(configuration.tokens * (2 * b + 1) / (2 * configuration.batch)));
  }
  backend.upload(lengths, counts.data());
  const AttentionForward forward{.out = out,
                                 .log_sum_exp = log_sum_exp,
                                 .q = qkv.ref().select(2, 0),
                                 .k = qkv.ref().select(2, 1),
                                 .v = qkv.ref().select(2, 2),
                                 .lengths = lengths_differ ? lengths.ref() : TensorRef(),
                                 .causal = causal,
                                 .scale = 0.125};
  AttentionSeconds seconds;
  seconds.forward = fastest(repeats, [&] { backend.attention_forward(forward); });
  seconds.backward = fastest(repeats, [&] {
    backend.attention_backward({.dq = gradients.ref().select(2, 0),
                                .dk = gradients.ref().select(2, 1),
                                .dv = gradients.ref().select(2, 2),
                                .dout = dout,
                                .forward = forward});
  });
  return seconds;
}

void print_attention(Backend& backend, const Configuration& configuration, int repeats, bool causal,
                     bool lengths_differ) {
  const AttentionSeconds seconds = time_attention(backend, configuration, repeats, causal, lengths_differ);
  fmt::print("  attention, {:10} {:15}   forward {:6.2f} ms   backward {:6.2f} ms\n", causal ? "causal," : "all keys,",
             lengths_differ ? "half is padding" : "no padding", 1e3 * seconds.forward, 1e3 * seconds.backward);
}

// The rate of a large linear layer, GFLOP/s.
double our_gemm_rate(Backend& backend, int repeats) {
  constexpr std::int64_t kSize = 2048;
  const DType compute = backend.compute_dtype();
  const Tensor x(backend, compute, {kSize, kSize}), y(backend, compute, {kSize, kSize});
  const Tensor weight(backend, compute, {kSize, kSize});
  for (const TensorRef& view : {x.ref(), weight.ref()}) backend.fill_normal(view, RandomStream(), 0, 1);
  constexpr double kOperations = 2e-9 * kSize * kSize * kSize;
  return kOperations / fastest(repeats, [&] { backend.linear_forward({.y = y, .x = x, .weight = weight}); });
}

// Forward is two products of S x S x D a head, backward five; causal ones are counted half. The rate of the product is
// measured beside each row, since a machine's changes.
void compare_attention(const Options& options) {
  const auto backend = make_cpu_backend({.compute_dtype = options.compute});
  fmt::print("| tokens | keys | head | GEMM GFLOP/s | forward GFLOP/s | backward GFLOP/s | forward | backward |\n");
  fmt::print("|---|---|---|---|---|---|---|---|\n");
  for (const std::int64_t tokens : {1024, 4096}) {
    if (options.tokens != 0 && options.tokens != tokens) continue;
    for (const bool causal : {true, false}) {
      for (const std::int64_t head_size : {32, 64, 128}) {
        const std::int64_t heads = 768 / head_size;
        const Configuration configuration{"attention", 1, heads * head_size, heads, tokens, 0, 1};
        double gemm = our_gemm_rate(*backend, options.repeats);
        const auto [forward, backward] = time_attention(*backend, configuration, options.repeats, causal, false);
        gemm = std::max(gemm, our_gemm_rate(*backend, options.repeats));
        const double product = 2e-9 * static_cast<double>(heads * tokens * tokens * head_size) * (causal ? 0.5 : 1);
        const double forward_rate = 2 * product / forward, backward_rate = 5 * product / backward;
        fmt::print("| {} | {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.0f} % | {:.0f} % |\n", tokens,
                   causal ? "causal" : "all", head_size, gemm, forward_rate, backward_rate, 100 * forward_rate / gemm,
                   100 * backward_rate / gemm);
      }
    }
  }
}

void time_linears(const Configuration& configuration, const Options& options) {
  const auto backend = make_cpu_backend({.compute_dtype = options.compute});
  const std::int64_t rows = configuration.batch * configuration.tokens, h = configuration.hidden;
  fmt::print("\nlinear layers of {} in {}, GFLOP/s\n", configuration.name, name_of(options.compute));
  time_linear(*backend, rows, 3 * h, h, options.repeats);
  time_linear(*backend, rows, h, h, options.repeats);
  time_linear(*backend, rows, 4 * h, h, options.repeats);
  time_linear(*backend, rows, h, 4 * h, options.repeats);
  for (const std::int64_t chunk : {256, 512}) {
    time_linear(*backend, chunk, configuration.model(0).padded_vocab_size(), h, options.repeats);
  }
  print_attention(*backend, configuration, options.repeats, true, false);
  for (const bool lengths_differ : {false, true}) {
    print_attention(*backend, configuration, options.repeats, false, lengths_differ);
  }
}

DType compute_type(const std::string& name) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    if (name == name_of(dtype)) return dtype;
  }
  throw_user_error("--compute {}: expected f32, bf16 or f16", name);
}

Options read_options(std::span<char*> arguments) {
  Options options;
  for (std::size_t i = 1; i + 1 < arguments.size(); i += 2) {
    const std::string name = arguments[i], value = arguments[i + 1];
    if (name == "--threads") {
      options.threads = std::atoi(value.c_str());
    } else if (name == "--repeats") {
      options.repeats = std::atoi(value.c_str());
    } else if (name == "--tokens") {
      options.tokens = std::atoll(value.c_str());
    } else if (name == "--dropout") {
      options.dropout = std::atof(value.c_str());
    } else if (name == "--only") {
      options.only = value;
    } else if (name == "--compute") {
      options.compute = compute_type(value);
    } else {
      throw_user_error("there is no option {}", name);
    }
  }
  return options;
}

int run(std::span<char*> arguments) {
  const Options options = read_options(arguments);
  set_thread_count(options.threads);
  fmt::print(stderr, "instructions: {}; {}\n",
             text_of_instructions(*make_cpu_backend({.compute_dtype = options.compute})), onednn_instructions());
  if (options.only == "attention") {
    compare_attention(options);
    return 0;
  }
  const std::vector<Configuration> configurations = {{"a: L6 h384", 6, 384, 6, 256, 4096, 8},
                                                     {"b: L4 h256", 4, 256, 4, 256, 8192, 8},
                                                     {"c: 124M", 12, 768, 12, 1024, 50257, 1}};
  for (const Configuration& configuration : configurations) {
    if (!options.only.empty() && !configuration.name.starts_with(options.only)) continue;
    time_steps(configuration, options);
    time_linears(configuration, options);
  }
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::run); }
