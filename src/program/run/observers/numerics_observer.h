// numerics.jsonl: norms and extremes of every layer in every update (--trace-numerics).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "telemetry/dispensable_log.h"
#include "telemetry/metrics_log.h"
#include "train/trainer.h"

namespace teratron {

// Writes a line for each layer and update, the embedding as layer -1. Values that are not finite become null.
class NumericsObserver final : public TrainingObserver {
 public:
  // The run resumes after `start` iterations. `report` is called once for a file that cannot be written.
  NumericsObserver(const TrainConfig& config, std::int64_t start, std::function<void(const std::string&)> report);

  void iteration(const IterationReport& report) override;

 private:
  std::optional<DispensableLog<MetricsLog>> log_;
};

}  // namespace teratron
