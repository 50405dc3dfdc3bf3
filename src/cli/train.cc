// teratron train: pretrains a GPT-2.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <optional>

#include "base/file.h"
#include "base/threads.h"
#include "cli/commands.h"
#include "cli/memory_table.h"
#include "cli/report.h"
#include "telemetry/metrics_log.h"
#include "telemetry/peak_memory.h"
#include "telemetry/progress.h"
#include "telemetry/readable.h"
#include "tokenizer/tokenizer.h"
#include "train/trainer.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// Shows every event to a person and writes it to metrics.jsonl, where there is a folder for it.
class Reporter final : public TrainingObserver {
 public:
  Reporter(const TrainConfig& config, const Trainer& trainer, std::int64_t start)
      : progress_(stderr, terminal_columns(stderr), scale(config, trainer)) {
    if (!config.save.empty()) metrics_.emplace(config.save / "metrics.jsonl", start);
  }

  void iteration(const IterationReport& r) override {
    progress_.iteration({.iteration = r.iteration,
                         .consumed_samples = r.consumed_samples,
                         .loss = r.loss,
                         .gradient_norm = r.gradient_norm,
                         .learning_rate = r.learning_rate,
                         .seconds = r.seconds});
    if (!metrics_) return;
    metrics_->write(r.iteration, {{"consumed_samples", r.consumed_samples},
                                  {"consumed_tokens", r.consumed_tokens},
                                  {"loss", r.loss},
                                  {"gradient_norm", r.gradient_norm},
                                  {"learning_rate", r.learning_rate},
                                  {"seconds", r.seconds}});
  }
  void validation(std::int64_t iteration, double loss) override {
    progress_.message(fmt::format("validation after iteration {}: loss {:.4f}, perplexity {:.2f} per token", iteration,
                                  loss, std::exp(loss)));
    if (metrics_) metrics_->write(iteration, {{"validation_loss", loss}});
  }
  void saved(std::int64_t, const fs::path& folder) override {
    progress_.message(fmt::format("saved {}", folder.string()));
  }

 private:
  static ProgressScale scale(const TrainConfig& config, const Trainer& trainer) {
    const std::int64_t tokens = config.samples_per_iteration() * config.seq_length;
    return {.total_iterations = config.train_iters,
            .log_interval = config.log_interval,
            .global_batch_size = config.samples_per_iteration(),
            .tokens_per_iteration = tokens,
            .flops_per_iteration =
                static_cast<double>(tokens) * trainer.runner().config().training_flops_per_token(config.seq_length)};
  }

  Progress progress_;
  std::optional<MetricsLog> metrics_;
};

std::int64_t vocabulary_size(const TrainConfig& config) {
  if (!config.tokenizer.empty()) {
    const std::int64_t size = Tokenizer::load(config.tokenizer).vocab_size();
    if (config.model.vocab_size != 0 && config.model.vocab_size < size) {
      throw_user_error("--vocab-size {} is smaller than the tokenizer's vocabulary of {} in '{}'; leave it out",
                       config.model.vocab_size, size, config.tokenizer.string());
    }
    return size;
  }
  if (config.model.vocab_size == 0) {
    throw_user_error(
        "the vocabulary's size is unknown: give --tokenizer DIR (the one the data was made with) or "
        "--vocab-size N");
  }
  return config.model.vocab_size;
}

// A run that would overwrite another's checkpoints is stopped before it starts.
void prepare_save_folder(const TrainConfig& config) {
  if (config.save.empty()) return;
  make_folders(config.save);
  std::error_code ignored;
  if (fs::exists(config.save / "latest_checkpointed_iteration.txt") &&
      !fs::equivalent(config.save, config.load.empty() ? fs::path("/") : config.load, ignored)) {
    throw_user_error("'{0}' already holds a run; go on with it by --load {0}, or --save elsewhere",
                     config.save.string());
  }
  write_file_atomically(config.save / "config.toml", to_toml(config));
}

std::unique_ptr<Backend> make_backend(const TrainConfig& config) {
  if (config.backend == BackendKind::kReference) return make_reference_backend(DType::kF32);
  return make_cpu_backend({.guard_memory = config.guard_memory});
}

void print_start(const TrainConfig& config, const Trainer& trainer, const Backend& backend) {
  TrainConfig shown = config;
  const ModelConfig& model = trainer.runner().config();
  fmt::print(stderr, "{}\n", value_table(fields_of(shown)));
  fmt::print(stderr, "GPT-2 with {} parameters: {} layers, hidden {}, {} heads, vocabulary {} (padded to {})\n",
             readable_count(static_cast<double>(model.parameters())), model.num_layers, model.hidden_size,
             model.num_attention_heads, model.vocab_size, model.padded_vocab_size());
  fmt::print(stderr, "{} training samples of {} tokens an epoch; back end {}, {} threads\n",
             trainer.training_samples().samples_per_epoch(), config.seq_length, backend.name(), thread_count());
  fmt::print(stderr, "{}\n", memory_table(trainer.runner().memory()));
}

std::string result_json(const TrainConfig& config, const TrainingResult& result) {
  const std::string validation =
      result.validation_loss ? fmt::format("{}", *result.validation_loss) : std::string("null");
  return fmt::format(
      "{{\"iterations\": {}, \"consumed_samples\": {}, \"final_loss\": {}, \"validation_loss\": {}, "
      "\"tokens_per_second\": {:.1f}, \"peak_memory_bytes\": [{}]}}",
      result.iterations, result.iterations * config.samples_per_iteration(), result.final_loss, validation,
      result.tokens_per_second, peak_memory_bytes());
}

void run(const TrainConfig& config) {
  if (config.threads > 0) set_thread_count(static_cast<int>(config.threads));
  const std::int64_t vocab_size = vocabulary_size(config);
  const auto dataset = std::make_shared<const IndexedDataset>(IndexedDataset::open(config.data_path));
  const std::unique_ptr<Backend> backend = make_backend(config);
  Trainer trainer(config, *backend, dataset, vocab_size);
  print_start(config, trainer, *backend);
  require_memory(trainer.runner().memory());
  prepare_save_folder(config);
  const std::int64_t done = trainer.start();
  if (done > 0) fmt::print(stderr, "resuming after iteration {} of {}\n", done, config.train_iters);
  TrainingResult result;
  {
    Reporter reporter(config, trainer, done);
    result = trainer.run(reporter);
  }
  report(config.json, "", result_json(config, result));
}

}  // namespace

Command train_command() { return make_command("train", "trains a GPT-2 on a tokenised corpus", run); }

}  // namespace teratron
