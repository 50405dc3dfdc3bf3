// A run as programs read it: a line of metrics.jsonl for every update, validation, score and sample.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run/observers/run_scale.h"
#include "telemetry/dispensable_log.h"
#include "telemetry/metrics_log.h"

namespace teratron {

class MetricsObserver final : public TrainingObserver {
 public:
  // Writes to metrics.jsonl in --save. The run goes on after `start` iterations; `keeps_validation`: so does its log
  // with a validation at `start`. `tell`: is told once of a file that cannot be written.
  MetricsObserver(const TrainConfig& config, RunScale scale, std::int64_t start, bool keeps_validation,
                  std::function<void(const std::string&)> tell);

  void iteration(const IterationReport& report) override;
  void validation(std::int64_t iteration, const LossSums& losses) override;
  void scored(std::int64_t iteration, std::span<const TaskScore> scores) override;
  void sample(std::int64_t iteration, const std::string& prompt, std::span<const std::int32_t> tokens) override;

 private:
  void write(std::int64_t iteration, const std::vector<Metric>& metrics);
  void add_losses(const LossSums& losses, std::vector<Metric>& metrics) const;

  RunScale scale_;
  std::optional<DispensableLog<MetricsLog>> log_;
};

}  // namespace teratron
