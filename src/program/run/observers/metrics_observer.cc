#include "run/observers/metrics_observer.h"

#include <cmath>

namespace teratron {

MetricsObserver::MetricsObserver(const TrainConfig& config, RunScale scale, std::int64_t start, bool keeps_validation,
                                 std::function<void(const std::string&)> tell)
    : scale_(std::move(scale)) {
  std::vector<std::string> unwanted;
  if (!keeps_validation) unwanted = {"validation_loss", "score", "text"};
  const auto open = [file = config.output.save / "metrics.jsonl", start, unwanted] {
    return std::make_unique<MetricsLog>(file, start, unwanted);
  };
  log_.emplace(open, std::move(tell));
}

void MetricsObserver::write(std::int64_t iteration, const std::vector<Metric>& metrics) {
  log_->write([&](MetricsLog& log) { log.write(iteration, metrics); });
}

// Losses of several kinds, each by its name.
void MetricsObserver::add_losses(const LossSums& losses, std::vector<Metric>& metrics) const {
  if (scale_.losses.size() < 2) return;
  for (std::size_t kind = 0; kind < scale_.losses.size(); ++kind) {
    metrics.emplace_back(scale_.losses[kind].metric, losses.of_kind[kind]);
  }
}

void MetricsObserver::iteration(const IterationReport& r) {
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
  write(r.iteration, metrics);
}

void MetricsObserver::validation(std::int64_t iteration, const LossSums& losses) {
  std::vector<Metric> metrics = {{"kind", std::string("validation")}, {"validation_loss", losses.total()}};
  add_losses(losses, metrics);
  metrics.emplace_back("validation_perplexity", std::exp(losses.of_kind.front()));  // the first kind is that of tokens
  write(iteration, metrics);
}

void MetricsObserver::scored(std::int64_t iteration, std::span<const TaskScore> scores) {
  std::vector<Metric> metrics = {{"kind", std::string("score")}, {"score", scores.front().value}};
  for (const TaskScore& score : scores) metrics.emplace_back(score.name, score.value);
  write(iteration, metrics);
}

void MetricsObserver::sample(std::int64_t iteration, const std::string& prompt, std::span<const std::int32_t> tokens) {
  write(iteration, {{"kind", std::string("sample")}, {"prompt", prompt}, {"text", scale_.decoded(tokens)}});
}

}  // namespace teratron
