// What the first rank of a training run tells as it goes: to a person, and to the files that other programs read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "telemetry/dispensable_log.h"
#include "telemetry/metrics_log.h"
#include "telemetry/progress.h"
#include "telemetry/tensorboard_log.h"
#include "tokenizer/tokenizer.h"
#include "train/trainer.h"

namespace teratron {

// UserError where a run that does not go on from a checkpoint would mix its records with those of another.
void prepare_tensorboard(const TrainConfig& config);

// Shows every event to a person, and writes it to metrics.jsonl in --save and to TensorBoard's records in
// --tensorboard-dir, where these are given. Updates that take less than a tenth of a second are reported together, ten
// times a second: an update clears the caches of all that tells, so the first of them costs several times what the next
// ones do. A file that cannot be written (a full disk) is told of once, and the run goes on.
class TrainingReporter final : public TrainingObserver {
 public:
  // Of a run that goes on after `start` iterations. `peak_flops`: a second, of all ranks together, which MFU is counted
  // against.
  TrainingReporter(const TrainConfig& config, const Trainer& trainer, std::int64_t start, double peak_flops);
  TrainingReporter(const TrainingReporter&) = delete;
  TrainingReporter& operator=(const TrainingReporter&) = delete;
  ~TrainingReporter() override;  // tells the rest, where an error ended the run

  void iteration(const IterationReport& report) override;
  void validation(std::int64_t iteration, const LossSums& losses) override;
  void scored(std::int64_t iteration, std::span<const TaskScore> scores) override;
  void sample(std::int64_t iteration, const std::string& prompt, std::span<const std::int32_t> tokens) override;
  void saved(std::int64_t iteration, const std::filesystem::path& folder) override;
  void notice(const std::string& text) override;
  void flush() override;

 private:
  struct Update {
    IterationReport report;
    double wall_time;  // when it was done, in seconds since 1970
  };
  void open_logs(const TrainConfig& config, std::int64_t start, bool keeps_validation);
  void tell(const Update& update);
  void log_metrics(std::int64_t iteration, const std::vector<Metric>& metrics);
  void log_curves(std::vector<TensorBoardLog::Points> points, double wall_time = wall_seconds());
  void add_losses(const LossSums& losses, std::vector<Metric>& metrics) const;

  std::vector<ModelTraits::Loss> kinds_;
  double flops_per_token_;
  double peak_flops_;
  int ranks_;
  BatchSchedule batches_;
  Progress progress_;
  std::optional<DispensableLog<MetricsLog>> metrics_;
  std::optional<DispensableLog<TensorBoardLog>> tensorboard_;
  std::optional<Tokenizer> tokenizer_;  // where there are samples
  std::vector<Update> updates_;         // not reported yet
  double told_at_;                      // on the monotonic clock
};

}  // namespace teratron
