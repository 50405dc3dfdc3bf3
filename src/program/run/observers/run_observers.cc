#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run/observers/observer_list.h"
#include "run/observers/run_scale.h"
#include "run/observers/tensorboard_observer.h"
#include "telemetry/dispensable_log.h"
#include "telemetry/metrics_log.h"
#include "telemetry/progress.h"

namespace teratron {
namespace {

// Scale of a run whose trainer has started.
RunScale scale_of(const TrainConfig& config, const Trainer& trainer, double peak_flops,
                  std::shared_ptr<MemoryGauge> memory) {
  std::shared_ptr<const Tokenizer> tokenizer;
  if (!config.output.sample_prompts.empty()) {
    tokenizer = std::make_shared<const Tokenizer>(Tokenizer::load(config.model.tokenizer));
  }
  return {.losses = trainer.executor().loss_kinds(),
          .batches = trainer.batches(),
          .flops_per_token = trainer.task().config.training_flops_per_token(config.model.seq_length),
          .peak_flops = peak_flops,
          .ranks = config.layout.mesh().ranks(),
          .tokenizer = std::move(tokenizer),
          .memory = std::move(memory)};
}

ProgressScale progress_scale(const TrainConfig& config, const RunScale& scale) {
  return {.total_iterations = config.train_iters,
          .log_interval = config.output.log_interval,
          .total_samples = scale.batches.consumed_after(config.train_iters),
          .flops_per_token = scale.flops_per_token,
          .peak_flops = scale.peak_flops};
}

// Reports a run to people: lines on standard error, or one live line on a terminal.
class ProgressObserver final : public TrainingObserver {
 public:
  ProgressObserver(const TrainConfig& config, RunScale scale)
      : scale_(std::move(scale)), progress_(stderr, terminal_columns(stderr), progress_scale(config, scale_)) {}

  void iteration(const IterationReport& r) override {
    std::vector<ProgressPoint::Rate> rates;
    for (std::size_t kind = 0; kind < scale_.losses.size(); ++kind) {
      const ModelTraits::Loss& loss = scale_.losses[kind];
      if (loss.in_progress) rates.push_back({.name = loss.name, .value = r.losses.of_kind[kind]});
    }
    progress_.iteration({.iteration = r.iteration,
                         .global_batch_size = r.global_batch_size,
                         .consumed_samples = r.consumed_samples,
                         .tokens = r.tokens,
                         .loss = r.loss,
                         .gradient_norm = r.gradient_norm,
                         .learning_rate = r.learning_rate,
                         .seconds = r.seconds,
                         .rates = std::move(rates)});
    if (!r.skipped) return;
    progress_.message(fmt::format("iteration {}: gradients overflowed at loss scale {:g}; the update is skipped",
                                  r.iteration, r.loss_scale));
  }

  void validation(std::int64_t iteration, const LossSums& losses) override {
    const std::vector<ModelTraits::Loss>& kinds = scale_.losses;
    std::string parts;
    for (std::size_t kind = 0; kinds.size() > 1 && kind < kinds.size(); ++kind) {
      const char* const joint = kinds[kind].is_rate ? "," : kind == 0 ? " =" : " +";
      parts += fmt::format("{} {} {:.4f}", joint, kinds[kind].name, losses.of_kind[kind]);
    }
    if (kinds.front().has_perplexity) {
      parts += fmt::format(", perplexity {:.2f} per token", std::exp(losses.of_kind.front()));
    }
    progress_.message(fmt::format("validation after iteration {}: loss {:.4f}{}", iteration, losses.total(), parts));
  }

  void scored(std::int64_t iteration, std::span<const TaskScore> scores) override {
    std::string text;
    for (const TaskScore& score : scores) {
      text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", score.name, score.value);
    }
    progress_.message(fmt::format("validation after iteration {}: {}", iteration, text));
  }

  void sample(std::int64_t iteration, const std::string& prompt, std::span<const std::int32_t> tokens) override {
    progress_.message(fmt::format("sample after iteration {}: {}{}", iteration, prompt, scale_.decoded(tokens)));
  }

  void saved(std::int64_t, const std::filesystem::path& folder) override {
    progress_.message(fmt::format("saved {}", folder.string()));
  }

  void notice(const std::string& text) override { progress_.message(text); }

 private:
  RunScale scale_;
  Progress progress_;
};

// Reports a run to programs: a line of metrics.jsonl for every update, validation, score and sample.
class MetricsObserver final : public TrainingObserver {
 public:
  using Report = std::function<void(const std::string&)>;

  // The run resumes after `start` iterations. `keeps_validation`: its log keeps a validation at `start`.
  MetricsObserver(const TrainConfig& config, RunScale scale, std::int64_t start, bool keeps_validation, Report report)
      : scale_(std::move(scale)) {
    std::vector<std::string> unwanted;
    if (!keeps_validation) unwanted = {"validation_loss", "score", "text"};
    const auto open = [file = config.output.save / "metrics.jsonl", start, unwanted] {
      return std::make_unique<MetricsLog>(file, start, unwanted);
    };
    log_.emplace(open, std::move(report));
  }

  void iteration(const IterationReport& r) override {
    std::vector<Metric> metrics = {{"kind", std::string("iteration")},
                                   {"global_batch_size", r.global_batch_size},
                                   {"consumed_samples", r.consumed_samples},
                                   {"consumed_tokens", r.consumed_tokens},
                                   {"loss", r.loss}};
    add_losses(r.losses, metrics);
    metrics.insert(metrics.end(), {{"gradient_norm", r.gradient_norm},
                                   {"learning_rate", r.learning_rate},
                                   {"loss_scale", r.loss_scale},
                                   {"skipped", std::int64_t{r.skipped}},
                                   {"seconds", r.seconds},
                                   {"tokens_per_second", scale_.tokens_per_second(r)},
                                   {"mfu", scale_.mfu(r)}});
    if (scale_.memory) {
      metrics.emplace_back("memory_bytes", scale_.memory->fullest(r.iteration));
      metrics.emplace_back("planned_memory_bytes", scale_.memory->planned());
    }
    write(r.iteration, metrics);
  }

  void validation(std::int64_t iteration, const LossSums& losses) override {
    std::vector<Metric> metrics = {{"kind", std::string("validation")}, {"validation_loss", losses.total()}};
    add_losses(losses, metrics);
    if (scale_.losses.front().has_perplexity) {  // the first kind of loss is that of tokens
      metrics.emplace_back("validation_perplexity", std::exp(losses.of_kind.front()));
    }
    write(iteration, metrics);
  }

  void scored(std::int64_t iteration, std::span<const TaskScore> scores) override {
    std::vector<Metric> metrics = {{"kind", std::string("score")}, {"score", scores.front().value}};
    for (const TaskScore& score : scores) metrics.emplace_back(score.name, score.value);
    write(iteration, metrics);
  }

  void sample(std::int64_t iteration, const std::string& prompt, std::span<const std::int32_t> tokens) override {
    write(iteration, {{"kind", std::string("sample")}, {"prompt", prompt}, {"text", scale_.decoded(tokens)}});
  }

 private:
  void write(std::int64_t iteration, const std::vector<Metric>& metrics) {
    log_->write([&](MetricsLog& log) { log.write(iteration, metrics); });
  }

  // Adds losses of several kinds, each by its name.
  void add_losses(const LossSums& losses, std::vector<Metric>& metrics) const {
    if (scale_.losses.size() < 2) return;
    for (std::size_t kind = 0; kind < scale_.losses.size(); ++kind) {
      metrics.emplace_back(scale_.losses[kind].metric, losses.of_kind[kind]);
    }
  }

  RunScale scale_;
  std::optional<DispensableLog<MetricsLog>> log_;
};

// Writes numerics.jsonl (--trace-numerics): norms and extremes of every layer in every update, the embedding as layer
// -1. Values that are not finite become null.
class NumericsObserver final : public TrainingObserver {
 public:
  NumericsObserver(const TrainConfig& config, std::int64_t start, MetricsObserver::Report report) {
    const auto open = [file = config.output.save / "numerics.jsonl", start] {
      return std::make_unique<MetricsLog>(file, start);
    };
    log_.emplace(open, std::move(report));
  }

  void iteration(const IterationReport& report) override {
    log_->write([&](MetricsLog& log) {
      for (const LayerNumerics& layer : report.layers) {
        log.write(report.iteration, {{"layer", layer.layer},
                                     {"output_rms", layer.output.rms},
                                     {"output_largest", layer.output.largest},
                                     {"gradient_rms", layer.gradient.rms},
                                     {"gradient_largest", layer.gradient.largest},
                                     {"weights_rms", layer.weights.rms},
                                     {"weights_largest", layer.weights.largest}});
      }
    });
  }

 private:
  std::optional<DispensableLog<MetricsLog>> log_;
};

}  // namespace

void add_run_observers(ObserverList& list, const TrainConfig& config, const Trainer& trainer, std::int64_t done,
                       double peak_flops, std::shared_ptr<MemoryGauge> memory) {
  const RunScale scale = scale_of(config, trainer, peak_flops, std::move(memory));
  // Else the earlier run validated there only because it ended, or this one makes the validation again.
  const bool keeps_validation = trainer.has_validated();
  auto progress = std::make_unique<ProgressObserver>(config, scale);
  const auto report = [&shown = *progress](const std::string& text) { shown.notice(text); };
  list.add(std::move(progress));
  if (!config.output.save.empty()) {
    list.add(std::make_unique<MetricsObserver>(config, scale, done, keeps_validation, report));
  }
  if (!config.output.save.empty() && config.output.trace_numerics) {
    list.add(std::make_unique<NumericsObserver>(config, done, report));
  }
  if (writes_tensorboard(config)) {
    list.add(std::make_unique<TensorBoardObserver>(config, scale, done, keeps_validation, report));
  }
}

}  // namespace teratron
