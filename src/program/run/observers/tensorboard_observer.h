// TensorBoard's records of a run, with Megatron-LM's names of curves.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run/observers/run_scale.h"
#include "telemetry/dispensable_log.h"
#include "telemetry/tensorboard_log.h"

namespace teratron {

// Whether the run writes records. A folder that only the checkpoint names must hold records already: the sender of a
// checkpoint does not choose where this machine writes.
bool writes_tensorboard(const TrainConfig& config);

// UserError: a new run would mix its records with those of another.
void prepare_tensorboard(const TrainConfig& config);

class TensorBoardObserver final : public TrainingObserver {
 public:
  // Writes to --tensorboard-dir. The run resumes after `start` iterations. `keeps_validation`: a validation at `start`
  // stays. `report` is called once for files that cannot be written.
  TensorBoardObserver(const TrainConfig& config, RunScale scale, std::int64_t start, bool keeps_validation,
                      std::function<void(const std::string&)> report);

  void iteration(const IterationReport& report) override;
  void validation(std::int64_t iteration, const LossSums& losses) override;
  void scored(std::int64_t iteration, std::span<const TaskScore> scores) override;
  void sample(std::int64_t iteration, const std::string& prompt, std::span<const std::int32_t> tokens) override;

 private:
  void write(std::vector<TensorBoardLog::Points> points, double wall_time = wall_seconds());

  RunScale scale_;
  std::optional<DispensableLog<TensorBoardLog>> log_;
};

}  // namespace teratron
