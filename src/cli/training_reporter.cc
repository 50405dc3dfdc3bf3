#include "cli/training_reporter.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

namespace teratron {
namespace {

ProgressScale progress_scale(const TrainConfig& config, const Trainer& trainer) {
  const double flops_per_token = trainer.task().config.training_flops_per_token(config.seq_length);
  return {.total_iterations = config.train_iters,
          .log_interval = config.log_interval,
          .total_samples = config.batches().consumed_after(config.train_iters),
          .tokens_per_sample = config.seq_length,
          .flops_per_sample = static_cast<double>(config.seq_length) * flops_per_token};
}

}  // namespace

TrainingReporter::TrainingReporter(const TrainConfig& config, const Trainer& trainer, std::int64_t start)
    : progress_(stderr, terminal_columns(stderr), progress_scale(config, trainer)) {
  if (config.save.empty()) return;
  const char* const unwanted = trainer.validates_after(start) ? "" : "validation_loss";
  metrics_.emplace(config.save / "metrics.jsonl", start, unwanted);
}

void TrainingReporter::iteration(const IterationReport& r) {
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

void TrainingReporter::validation(std::int64_t iteration, double loss) {
  progress_.message(fmt::format("validation after iteration {}: loss {:.4f}, perplexity {:.2f} per token", iteration,
                                loss, std::exp(loss)));
  if (metrics_) metrics_->write(iteration, {{"validation_loss", loss}});
}

void TrainingReporter::saved(std::int64_t, const std::filesystem::path& folder) {
  progress_.message(fmt::format("saved {}", folder.string()));
}

void TrainingReporter::notice(const std::string& text) { progress_.message(text); }

}  // namespace teratron
