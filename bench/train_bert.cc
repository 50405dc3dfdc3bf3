// Teratron's side of bench/train_bert: full steps of BERT's pre-training, or with --spans 1 of fine-tuning on SQuAD, on
// one batch of random tokens, on one rank. Takes turns with bench/peers/pytorch_bert.py and speaks as it does
// (bench/peers/training_steps.py).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <vector>

#include "base/host/monotonic_clock.h"
#include "base/host/resources.h"
#include "base/host/threads.h"
#include "model/make_model.h"
#include "optim/adamw.h"
#include "pipeline/generators.h"
#include "program.h"
#include "train/micro_batches.h"

namespace teratron {
namespace {

struct Options {
  std::map<std::string, double> numbers = {{"layers", 12},   {"hidden", 768}, {"heads", 12},  {"seq", 512},
                                           {"vocab", 30522}, {"batch", 1},    {"threads", 2}, {"dropout", 0},
                                           {"post", 0},      {"micro", 1},    {"bf16", 0},    {"spans", 0}};
  std::vector<std::int64_t> lengths;  // of the batch's sequences

  double at(const std::string& name) const { return numbers.at(name); }
  std::int64_t count(const std::string& name) const { return static_cast<std::int64_t>(at(name)); }
};

Options read_options(std::span<char*> arguments) {
  Options options;
  for (std::size_t i = 1; i + 1 < arguments.size(); i += 2) {
    const std::string name = std::string(arguments[i]).substr(2);
    if (name == "lengths") {
      std::istringstream text(arguments[i + 1]);
      for (std::string number; std::getline(text, number, ',');) options.lengths.push_back(std::atoll(number.c_str()));
    } else if (options.numbers.contains(name)) {
      options.numbers[name] = std::atof(arguments[i + 1]);
    } else {
      throw_user_error("there is no option --{}", name);
    }
  }
  if (options.lengths.empty())
    options.lengths.assign(static_cast<std::size_t>(options.count("batch")), options.count("seq"));
  std::ranges::sort(options.lengths);  // as `train` puts samples of similar length together
  return options;
}

ModelConfig config_of(const Options& o) {
  ModelConfig config{.num_layers = o.count("layers"),
                     .hidden_size = o.count("hidden"),
                     .num_attention_heads = o.count("heads"),
                     .vocab_size = o.count("vocab"),
                     .max_position_embeddings = o.count("seq"),
                     .hidden_dropout = o.at("dropout"),
                     .attention_dropout = o.at("dropout")};
  config.set_kind(ModelKind::kBert);
  if (o.at("post") > 0) config.norm_placement = NormPlacement::kPost;
  if (o.at("spans") > 0) config.head = ModelHead::kSpans;
  return config;
}

// Text of these lengths; 15 % of each masked, or an answer in each. Weights are of means.
SampleBatch random_batch(const Options& o) {
  const std::int64_t seq = o.count("seq"), samples = static_cast<std::int64_t>(o.lengths.size());
  const auto vocabulary = static_cast<std::uint32_t>(o.at("vocab"));
  std::mt19937 random(1);
  SampleBatch batch;
  const auto places = static_cast<std::size_t>(samples * seq);
  batch.weights.resize(places);
  for (std::size_t i = 0; i < places; ++i) {
    batch.ids.push_back(static_cast<std::int32_t>(random() % vocabulary));
    batch.targets.push_back(static_cast<std::int32_t>(random() % vocabulary));
    batch.token_types.push_back(static_cast<std::int32_t>(random() % 2));
  }
  double masked = 0;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const std::int64_t length = o.lengths[static_cast<std::size_t>(sample)];
    std::vector<std::int64_t> order(static_cast<std::size_t>(length));
    std::iota(order.begin(), order.end(), sample * seq);
    std::ranges::shuffle(order, random);
    for (std::int64_t i = 0; i < (15 * length + 50) / 100; ++i, ++masked) {
      batch.weights[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = 1;
    }
    batch.key_lengths.push_back(static_cast<std::int32_t>(length));
    const bool is_spans = o.at("spans") > 0;
    for (int label = 0; label < (is_spans ? 2 : 1); ++label) {
      batch.labels.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(is_spans ? length : 2)));
      batch.label_weights.push_back(1.0F / static_cast<float>(is_spans ? 2 * samples : samples));
    }
  }
  for (float& weight : batch.weights) weight /= static_cast<float>(masked);
  return batch;
}

class TrainingStep {
 public:
  explicit TrainingStep(const Options& o)
      : options_(o),
        backend_(make_cpu_backend({.compute_dtype = o.at("bf16") > 0 ? DType::kBF16 : DType::kF32})),
        model_(make_model(config_of(o))),
        executor_(*backend_, *model_,
                  {.batch = o.count("micro"),
                   .tokens = o.count("seq"),
                   .schedule = pipeline::make_schedule(pipeline::ScheduleKind::k1F1B,
                                                       {.micro_batches = static_cast<int>(micro_batches())}),
                   .optimizer = std::make_shared<AdamWOptimizer>(AdamWSettings{.beta2 = 0.95, .weight_decay = 0.1})}),
        parameters_(executor_.parameters()) {
    executor_.allocate();
    executor_.initialize(1);
  }

  double run(double& loss) {
    // Reading samples is not timed; cutting them to their lengths is.
    SampleBatch batch = random_batch(options_);
    const double start = monotonic_seconds();
    const MicroBatchCutter cutter(executor_, options_.count("seq"));
    std::vector<MicroBatch> all;
    const auto samples = static_cast<std::int64_t>(options_.lengths.size());
    for (std::int64_t done = 0; done < samples; done += options_.count("micro")) {
      all.push_back(cutter.micro_batch(batch, done, std::min(options_.count("micro"), samples - done)));
      all.back().first_sample = done;
      all.back().iteration = static_cast<std::uint32_t>(update_);
    }
    loss = executor_.forward_backward(all).total();
    const double norm = gradient_norm(*backend_, parameters_, executor_.mesh());
    executor_.update({.learning_rate = 1e-4, .update = ++update_, .gradient_norm = norm});
    return monotonic_seconds() - start;
  }

  std::int64_t planned_bytes() const { return executor_.memory().bytes(); }
  std::string instructions() const { return text_of_instructions(*backend_); }
  double flops() const {
    double flops = 0;
    for (const std::int64_t length : options_.lengths) {
      flops += static_cast<double>(length) * config_of(options_).training_flops_per_token(length);
    }
    return flops;
  }

 private:
  std::int64_t micro_batches() const {
    const auto samples = static_cast<std::int64_t>(options_.lengths.size()), micro = options_.count("micro");
    return (samples + micro - 1) / micro;
  }

  const Options options_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  Executor executor_;
  std::vector<Parameter*> parameters_;
  std::int64_t update_ = 0;
};

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

int run(std::span<char*> arguments) {
  const Options options = read_options(arguments);
  set_thread_count(static_cast<int>(options.at("threads")));
  TrainingStep training(options);
  double loss = 0;
  for (int warmup = 0; warmup < 2; ++warmup) training.run(loss);
  say(
      fmt::format("{{\"ready\": true, \"instructions\": \"{}\", \"model_flops_per_step\": {}, \"planned_bytes\": {}, "
                  "\"peak_rss_bytes\": {}}}",
                  training.instructions(), training.flops(), training.planned_bytes(), peak_memory_bytes()));
  for (std::string word; std::cin >> word && word != "quit";) {
    int count = 0;
    if (word != "step" || !(std::cin >> count)) throw_user_error("want \"step N\" or \"quit\", not '{}'", word);
    std::vector<double> seconds;
    for (int i = 0; i < count; ++i) seconds.push_back(training.run(loss));
    say(fmt::format("{{\"seconds\": [{}], \"peak_rss_bytes\": {}, \"loss\": {}}}", fmt::join(seconds, ", "),
                    peak_memory_bytes(), loss));
  }
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::run); }
