// teratron train: pretrains a GPT-2.
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "base/monotonic_clock.h"
#include "base/threads.h"
#include "checkpoint/save_lock.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/readable.h"
#include "profile/pipeline_profile.h"
#include "runtime/backend_choice.h"
#include "runtime/end_signals.h"
#include "runtime/memory_table.h"
#include "runtime/ranks.h"
#include "telemetry/metrics_log.h"
#include "telemetry/progress.h"
#include "telemetry/trace_file.h"
#include "train/trainer.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// Shows every event to a person and writes it to metrics.jsonl, where there is a folder for it.
class Reporter final : public TrainingObserver {
 public:
  Reporter(const TrainConfig& config, const Trainer& trainer, std::int64_t start)
      : progress_(stderr, terminal_columns(stderr), scale(config, trainer)) {
    if (config.save.empty()) return;
    const char* const unwanted = trainer.validates_after(start) ? "" : "validation_loss";
    metrics_.emplace(config.save / "metrics.jsonl", start, unwanted);
  }

  void iteration(const IterationReport& r) override {
    progress_.iteration({.iteration = r.iteration,
                         .global_batch_size = r.global_batch_size,
                         .consumed_samples = r.consumed_samples,
                         .loss = r.loss,
                         .gradient_norm = r.gradient_norm,
                         .learning_rate = r.learning_rate,
                         .seconds = r.seconds});
    if (r.skipped) {
      progress_.message(fmt::format("iteration {}: gradients overflowed at loss scale {:g}; the update is skipped",
                                    r.iteration, r.loss_scale));
    }
    if (!metrics_) return;
    metrics_->write(r.iteration, {{"global_batch_size", r.global_batch_size},
                                  {"consumed_samples", r.consumed_samples},
                                  {"consumed_tokens", r.consumed_tokens},
                                  {"loss", r.loss},
                                  {"gradient_norm", r.gradient_norm},
                                  {"learning_rate", r.learning_rate},
                                  {"loss_scale", r.loss_scale},
                                  {"skipped", std::int64_t{r.skipped}},
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
  void notice(const std::string& text) override { progress_.message(text); }

 private:
  static ProgressScale scale(const TrainConfig& config, const Trainer& trainer) {
    const double flops_per_token = trainer.task().config.training_flops_per_token(config.seq_length);
    return {.total_iterations = config.train_iters,
            .log_interval = config.log_interval,
            .total_samples = config.batches().consumed_after(config.train_iters),
            .tokens_per_sample = config.seq_length,
            .flops_per_sample = static_cast<double>(config.seq_length) * flops_per_token};
  }

  Progress progress_;
  std::optional<MetricsLog> metrics_;
};

// A run whose trace could not be written in the end is stopped before it starts.
void prepare_trace(const TrainConfig& config) {
  if (config.trace.empty()) return;
  if (config.trace.has_parent_path()) make_folders(config.trace.parent_path());
  write_file_atomically(config.trace, trace_file({}));
}

// Held to the end of the process's part in the run.
std::unique_ptr<SaveLock> lock_save_folder(const TrainConfig& config) {
  if (config.save.empty()) return nullptr;
  make_folders(config.save);
  return std::make_unique<SaveLock>(
      config.save, SaveLockSettings{.notice = [](const std::string& text) { fmt::print(stderr, "{}\n", text); }});
}

// So is one that would overwrite another's checkpoints.
void prepare_save_folder(const TrainConfig& config) {
  if (config.save.empty()) return;
  std::error_code ignored;
  if (fs::exists(config.save / "latest_checkpointed_iteration.txt") &&
      !fs::equivalent(config.save, config.load.empty() ? fs::path("/") : config.load, ignored)) {
    throw_user_error("'{0}' already holds a run; go on with it by --load {0}, or --save elsewhere",
                     config.save.string());
  }
  write_file_atomically(config.save / "config.toml", to_toml(config));
}

void print_start(const TrainConfig& config, const Trainer& trainer, const Backend& backend) {
  TrainConfig shown = config;
  const ModelConfig& model = trainer.task().config;
  fmt::print(stderr, "{}\n", value_table(fields_of(shown)));
  fmt::print(stderr, "GPT-2 with {} parameters: {} layers, hidden {}, {} heads, vocabulary {} (padded to {})\n",
             readable_count(static_cast<double>(model.parameters())), model.num_layers, model.hidden_size,
             model.num_attention_heads, model.vocab_size, model.padded_vocab_size(config.tensor_parallel));
  fmt::print(stderr, "{} training samples of {} tokens an epoch; back end {}, {} threads{}\n",
             trainer.task().training->samples_per_epoch(), config.seq_length, backend.name(), thread_count(),
             config.mesh().ranks() > 1 ? " in each rank" : "");
  if (config.rows_of_logits() == 0) {
    fmt::print(stderr, "logits {} rows at a time, since memory allows it (--logits-chunk)\n",
               trainer.executor().options().logits_chunk);
  }
  fmt::print(stderr, "{}\n", trainer.task().split_description);
}

std::string_view name_of_end(const TrainingResult& result) {
  switch (result.end) {
    case RunEnd::kSignal: return name_of_signal(result.signal);
    case RunEnd::kExitDuration: return "exit-duration-in-mins";
    case RunEnd::kEarlyStop: return "early-stop";
    case RunEnd::kComplete: break;
  }
  return "train-iters";
}

nlohmann::ordered_json json_of(const TrainConfig& config, const TrainingResult& result,
                               const std::vector<std::int64_t>& peaks) {
  const auto number = [](std::optional<double> value) { return value ? nlohmann::ordered_json(*value) : nullptr; };
  return {{"iterations", result.iterations},
          {"ended_by", name_of_end(result)},
          {"consumed_samples", config.batches().consumed_after(result.iterations)},
          {"final_loss", number(result.final_loss)},
          {"validation_loss", number(result.validation_loss)},
          {"tokens_per_second", std::round(10 * result.tokens_per_second) / 10},
          {"peak_memory_bytes", peaks}};
}

// `done`: iterations of the checkpoint.
void print_progress_made(const TrainConfig& config, std::int64_t done) {
  if (done >= config.train_iters) {
    fmt::print(stderr,
               "nothing to do: '{}' has done {} iterations, and --train-iters is {}; give a larger one to go on\n",
               config.load.string(), done, config.train_iters);
  } else if (done > 0) {
    fmt::print(stderr, "resuming after iteration {} of {}\n", done, config.train_iters);
  }
}

struct Job {
  const TrainConfig& config;
  double began;  // on the monotonic clock
  EndSignals& end_signals;
  std::atomic<int>& signal;  // that ended the run; 0: none
  std::string layout;        // for people
  std::int64_t vocab_size;
  std::shared_ptr<const IndexedDataset> dataset;
};

void run_rank(const Job& job, const Rank& rank) {
  const TrainConfig& config = job.config;
  const std::unique_ptr<Backend> backend = make_backend(config, rank);
  std::optional<slicing::Profile> profile;
  if (config.token_slices == "auto" || !config.profile.empty()) {
    profile =
        profile_for(profile_request(config, job.vocab_size, rank.environment.ranks_are()), rank.mesh, *backend,
                    config.profile, rank.is_first() ? show_steps("measuring what slices cost") : ProfileProgress{});
  }
  Trainer trainer(config, *backend, make_training_task(config, job.dataset, job.vocab_size, rank.mesh->place().tensor),
                  rank.mesh, profile ? &*profile : nullptr);
  const std::vector<RankMemory> memory =
      memory_of_ranks(trainer.executor().memory(), *backend, rank.mesh->pipeline->rank(), rank.world);
  std::unique_ptr<SaveLock> save_lock;
  if (rank.is_first()) {
    print_start(config, trainer, *backend);
    if (!job.layout.empty()) fmt::print(stderr, "{}\n", job.layout);
    if (const std::string pipeline = text_of(trainer.pipeline()); !pipeline.empty()) {
      fmt::print(stderr, "{}\n", pipeline);
    }
    fmt::print(stderr, "{}\n", memory_table(memory));
    save_lock = lock_save_folder(config);
    prepare_trace(config);
    prepare_save_folder(config);
  }
  require_memory(memory, *backend, rank.world, rank.ranks_in_this_process());
  rank.world.barrier();  // no rank takes memory before it is known that there is enough
  const std::int64_t done = trainer.start();
  const RunControl control{.signal = EndSignals::came, .began = job.began};
  job.end_signals.listen();
  TrainingResult result;
  if (rank.is_first()) {
    print_progress_made(config, done);
    Reporter reporter(config, trainer, done);
    result = trainer.run(reporter, control);
  } else {
    TrainingObserver silent;
    result = trainer.run(silent, control);
  }
  job.signal = result.signal;
  if (trainer.trace()) write_trace(config.trace, *trainer.trace(), *rank.mesh, rank.world);
  const std::vector<std::int64_t> peaks = rank.peak_memory(*backend);
  if (rank.is_first()) report(config.json, "", json_of(config, result, peaks).dump());
}

void run(const TrainConfig& config) {
  const double began = monotonic_seconds();
  const RankLauncher launcher(config.threads, config.backend);
  training_split(config, config.load);  // a contradiction is told once, before there are ranks
  config.documents(config.tokenizer);   // likewise
  EndSignals end_signals(launcher.environment().process == 0);
  std::atomic<int> signal{0};
  const Job job{.config = config,
                .began = began,
                .end_signals = end_signals,
                .signal = signal,
                .layout = launcher.description(config.mesh()),
                .vocab_size = config.vocabulary_size(),
                .dataset = std::make_shared<const IndexedDataset>(IndexedDataset::open(config.data_path))};
  launcher.run(config.mesh(), to_toml(config), [&](const Rank& rank) { run_rank(job, rank); });
  if (signal != 0) throw EndedBySignal(signal);
}

}  // namespace

Command train_command() { return make_command<TrainConfig>("train", "trains a GPT-2 on a tokenised corpus", run); }

}  // namespace teratron
