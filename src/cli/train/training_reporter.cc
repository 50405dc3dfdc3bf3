#include "cli/train/training_reporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/host/monotonic_clock.h"
#include "tokenizer/stream_decoder.h"

namespace teratron {
namespace {

constexpr double kHeldBack = 0.1;  // seconds

using Curves = std::vector<std::pair<std::string, double>>;

// Megatron-LM's names: training_log() and evaluate_and_print_results() of megatron/training/training.py.
// The kinds of losses have its names, too.
constexpr const char *kOverSamples = " vs samples", *kOfValidation = " validation";
constexpr const char* kSample = "sample";  // not one of Megatron-LM's

ProgressScale progress_scale(const TrainConfig& config, const BatchSchedule& batches, double flops_per_token,
                             double peak_flops) {
  return {.total_iterations = config.train_iters,
          .log_interval = config.output.log_interval,
          .total_samples = batches.consumed_after(config.train_iters),
          .flops_per_token = flops_per_token,
          .peak_flops = peak_flops};
}

TensorBoardLog::Points points(std::int64_t step, const Curves& curves, const char* suffix = "") {
  TensorBoardLog::Points points{.step = step};
  for (const auto& [name, value] : curves) points.values.emplace_back(name + suffix, static_cast<float>(value));
  return points;
}

// A folder that the checkpoint alone names is written to where a run has written records before: who sends a checkpoint
// does not choose where this machine is written to.
bool writes_tensorboard(const TrainConfig& config) {
  return !config.output.tensorboard_dir.empty() &&
         (!config.output.tensorboard_is_recorded || TensorBoardLog::holds_records(config.output.tensorboard_dir));
}

}  // namespace

void prepare_tensorboard(const TrainConfig& config) {
  if (config.output.tensorboard_dir.empty()) return;
  if (!writes_tensorboard(config)) {
    std::fputs(fmt::format("nothing is written to the checkpoint's --tensorboard-dir '{}', which holds no records of "
                           "its run; give the flag to write there\n",
                           config.output.tensorboard_dir.string())
                   .c_str(),
               stderr);
  }
  if (!config.output.load.empty()) return;
  if (TensorBoardLog::holds_records(config.output.tensorboard_dir)) {
    throw_user_error(
        "'{}' already holds the records of a run; go on with that run by --load, or choose another "
        "--tensorboard-dir",
        config.output.tensorboard_dir.string());
  }
}

TrainingReporter::TrainingReporter(const TrainConfig& config, const Trainer& trainer, std::int64_t start,
                                   double peak_flops)
    : kinds_(trainer.task().model->traits.losses),
      flops_per_token_(trainer.task().config.training_flops_per_token(config.model.seq_length)),
      peak_flops_(peak_flops),
      ranks_(config.layout.mesh().ranks()),
      batches_(trainer.batches()),
      progress_(stderr, terminal_columns(stderr), progress_scale(config, batches_, flops_per_token_, peak_flops)),
      told_at_(monotonic_seconds()) {
  if (!config.output.sample_prompts.empty()) tokenizer_ = Tokenizer::load(config.model.tokenizer);
  // A run that ended at `start` has validated because it ended.
  open_logs(config, start, trainer.validates_after(start));
}

void TrainingReporter::open_logs(const TrainConfig& config, std::int64_t start, bool keeps_validation) {
  const auto tell = [this](const std::string& text) { progress_.message(text); };
  if (!config.output.save.empty()) {
    std::vector<std::string> unwanted;
    if (!keeps_validation) unwanted = {"validation_loss", "score", "text"};
    const auto open = [file = config.output.save / "metrics.jsonl", start, unwanted] {
      return std::make_unique<MetricsLog>(file, start, unwanted);
    };
    metrics_.emplace(open, tell);
  }
  if (writes_tensorboard(config)) {
    const auto keeps = [start, samples = batches_.consumed_after(start), keeps_validation](std::int64_t step,
                                                                                           std::string_view tag) {
      const std::int64_t last = tag.ends_with(kOverSamples) ? samples : start;
      return step < last ||
             (step == last && (keeps_validation || !(tag.find(kOfValidation) != tag.npos || tag.starts_with(kSample))));
    };
    const auto open = [folder = config.output.tensorboard_dir, keeps] {
      return std::make_unique<TensorBoardLog>(folder, keeps);
    };
    tensorboard_.emplace(open, tell);
  }
}

void TrainingReporter::log_metrics(std::int64_t iteration, const std::vector<Metric>& metrics) {
  metrics_->write([&](MetricsLog& log) { log.write(iteration, metrics); });
}

void TrainingReporter::log_curves(std::vector<TensorBoardLog::Points> points, double wall_time) {
  tensorboard_->write([&](TensorBoardLog& log) { log.scalars(std::move(points), wall_time); });
}

TrainingReporter::~TrainingReporter() {
  try {
    flush();
  } catch (const std::exception&) {
    // The error that ended the run is the one to tell.
  }
}

void TrainingReporter::iteration(const IterationReport& report) {
  updates_.push_back({report, wall_seconds()});
  if (monotonic_seconds() - told_at_ >= kHeldBack) flush();
}

void TrainingReporter::flush() {
  const std::vector<Update> updates = std::exchange(updates_, {});
  for (const Update& update : updates) tell(update);
  told_at_ = monotonic_seconds();
}

void TrainingReporter::tell(const Update& update) {
  const IterationReport& r = update.report;
  progress_.iteration({.iteration = r.iteration,
                       .global_batch_size = r.global_batch_size,
                       .consumed_samples = r.consumed_samples,
                       .tokens = r.tokens,
                       .loss = r.loss,
                       .gradient_norm = r.gradient_norm,
                       .learning_rate = r.learning_rate,
                       .seconds = r.seconds});
  if (r.skipped) {
    progress_.message(fmt::format("iteration {}: gradients overflowed at loss scale {:g}; the update is skipped",
                                  r.iteration, r.loss_scale));
  }
  const double tokens_per_second = static_cast<double>(r.tokens) / r.seconds;
  const double mfu = tokens_per_second * flops_per_token_ / peak_flops_;
  if (metrics_) {
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
                                   {"tokens_per_second", tokens_per_second},
                                   {"mfu", mfu}});
    log_metrics(r.iteration, metrics);
  }
  if (tensorboard_) {
    Curves curves = {{"learning-rate", r.learning_rate},
                     {"batch-size", static_cast<double>(r.global_batch_size)},
                     {"loss-scale", r.loss_scale}};
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      curves.emplace_back(kinds_[kind].name, r.losses.of_kind[kind]);
    }
    if (!r.skipped) curves.emplace_back("grad-norm", r.gradient_norm);
    TensorBoardLog::Points over_samples = points(r.consumed_samples, curves, kOverSamples);
    curves.emplace_back("iteration-time", r.seconds);
    // Of a rank, in 10^12 floating-point operations a second.
    curves.emplace_back("throughput", tokens_per_second * flops_per_token_ / ranks_ / 1e12);
    curves.emplace_back("tokens-per-second", tokens_per_second);
    curves.emplace_back("mfu", mfu);
    log_curves({points(r.iteration, curves), std::move(over_samples)}, update.wall_time);
  }
}

// Where there are several, each by its name.
void TrainingReporter::add_losses(const LossSums& losses, std::vector<Metric>& metrics) const {
  if (kinds_.size() < 2) return;
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    metrics.emplace_back(kinds_[kind].metric, losses.of_kind[kind]);
  }
}

void TrainingReporter::validation(std::int64_t iteration, const LossSums& losses) {
  // The first kind is that of tokens.
  const double loss = losses.total(), perplexity = std::exp(losses.of_kind.front());
  std::string parts;
  for (std::size_t kind = 0; kinds_.size() > 1 && kind < kinds_.size(); ++kind) {
    const char* const joint = kinds_[kind].is_rate ? "," : kind == 0 ? " =" : " +";
    parts += fmt::format("{} {} {:.4f}", joint, kinds_[kind].name, losses.of_kind[kind]);
  }
  progress_.message(fmt::format("validation after iteration {}: loss {:.4f}{}, perplexity {:.2f} per token", iteration,
                                loss, parts, perplexity));
  if (metrics_) {
    std::vector<Metric> metrics = {{"kind", std::string("validation")}, {"validation_loss", loss}};
    add_losses(losses, metrics);
    metrics.emplace_back("validation_perplexity", perplexity);
    log_metrics(iteration, metrics);
  }
  if (tensorboard_) {
    constexpr double kMostExponent = 20;  // Megatron-LM's, so that the first points leave the others visible
    Curves curves;
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      const std::string name = std::string(kinds_[kind].name) + kOfValidation;
      curves.emplace_back(name, losses.of_kind[kind]);
      if (!kinds_[kind].is_rate)
        curves.emplace_back(name + " ppl", std::exp(std::min(losses.of_kind[kind], kMostExponent)));
    }
    log_curves({points(iteration, curves), points(batches_.consumed_after(iteration), curves, kOverSamples)});
  }
}

void TrainingReporter::scored(std::int64_t iteration, std::span<const TaskScore> scores) {
  std::string text;
  std::vector<Metric> metrics = {{"kind", std::string("score")}, {"score", scores.front().value}};
  Curves curves;
  for (const TaskScore& score : scores) {
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", score.name, score.value);
    metrics.emplace_back(score.name, score.value);
    curves.emplace_back(score.name + kOfValidation, score.value);
  }
  progress_.message(fmt::format("validation after iteration {}: {}", iteration, text));
  if (metrics_) log_metrics(iteration, metrics);
  if (tensorboard_) log_curves({points(iteration, curves)});
}

void TrainingReporter::sample(std::int64_t iteration, const std::string& prompt, std::span<const std::int32_t> tokens) {
  StreamDecoder decoder(*tokenizer_);
  std::string text;
  for (const std::int32_t token : tokens) text += decoder.push(token);
  text += decoder.finish();
  progress_.message(fmt::format("sample after iteration {}: {}{}", iteration, prompt, text));
  if (metrics_) log_metrics(iteration, {{"kind", std::string("sample")}, {"prompt", prompt}, {"text", text}});
  if (!tensorboard_) return;
  tensorboard_->write([&](TensorBoardLog& log) { log.text(iteration, fmt::format("{} {}", kSample, prompt), text); });
}

void TrainingReporter::saved(std::int64_t, const std::filesystem::path& folder) {
  progress_.message(fmt::format("saved {}", folder.string()));
}

void TrainingReporter::notice(const std::string& text) {
  flush();
  progress_.message(text);
}

}  // namespace teratron
