#include "run/observers/progress_observer.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

namespace teratron {
namespace {

ProgressScale progress_scale(const TrainConfig& config, const RunScale& scale) {
  return {.total_iterations = config.train_iters,
          .log_interval = config.output.log_interval,
          .total_samples = scale.batches.consumed_after(config.train_iters),
          .flops_per_token = scale.flops_per_token,
          .peak_flops = scale.peak_flops};
}

}  // namespace

ProgressObserver::ProgressObserver(const TrainConfig& config, RunScale scale)
    : scale_(std::move(scale)), progress_(stderr, terminal_columns(stderr), progress_scale(config, scale_)) {}

void ProgressObserver::iteration(const IterationReport& r) {
  progress_.iteration({.iteration = r.iteration,
                       .global_batch_size = r.global_batch_size,
                       .consumed_samples = r.consumed_samples,
                       .tokens = r.tokens,
                       .loss = r.loss,
                       .gradient_norm = r.gradient_norm,
                       .learning_rate = r.learning_rate,
                       .seconds = r.seconds});
  if (!r.skipped) return;
  progress_.message(fmt::format("iteration {}: gradients overflowed at loss scale {:g}; the update is skipped",
                                r.iteration, r.loss_scale));
}

void ProgressObserver::validation(std::int64_t iteration, const LossSums& losses) {
  const std::vector<ModelTraits::Loss>& kinds = scale_.losses;
  std::string parts;
  for (std::size_t kind = 0; kinds.size() > 1 && kind < kinds.size(); ++kind) {
    const char* const joint = kinds[kind].is_rate ? "," : kind == 0 ? " =" : " +";
    parts += fmt::format("{} {} {:.4f}", joint, kinds[kind].name, losses.of_kind[kind]);
  }
  progress_.message(fmt::format("validation after iteration {}: loss {:.4f}{}, perplexity {:.2f} per token", iteration,
                                losses.total(), parts, std::exp(losses.of_kind.front())));
}

void ProgressObserver::scored(std::int64_t iteration, std::span<const TaskScore> scores) {
  std::string text;
  for (const TaskScore& score : scores) {
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", score.name, score.value);
  }
  progress_.message(fmt::format("validation after iteration {}: {}", iteration, text));
}

void ProgressObserver::sample(std::int64_t iteration, const std::string& prompt, std::span<const std::int32_t> tokens) {
  progress_.message(fmt::format("sample after iteration {}: {}{}", iteration, prompt, scale_.decoded(tokens)));
}

void ProgressObserver::saved(std::int64_t, const std::filesystem::path& folder) {
  progress_.message(fmt::format("saved {}", folder.string()));
}

}  // namespace teratron
