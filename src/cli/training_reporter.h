// What the first rank of a training run tells as it goes: to a person, and to the files that other programs read.
#pragma once

#include <optional>
#include <string>

#include "telemetry/metrics_log.h"
#include "telemetry/progress.h"
#include "train/trainer.h"

namespace teratron {

// Shows every event to a person and writes it to metrics.jsonl, where there is a folder for it.
class TrainingReporter final : public TrainingObserver {
 public:
  // Of a run that goes on after `start` iterations.
  TrainingReporter(const TrainConfig& config, const Trainer& trainer, std::int64_t start);

  void iteration(const IterationReport& report) override;
  void validation(std::int64_t iteration, double loss) override;
  void saved(std::int64_t iteration, const std::filesystem::path& folder) override;
  void notice(const std::string& text) override;

 private:
  Progress progress_;
  std::optional<MetricsLog> metrics_;
};

}  // namespace teratron
