// A run as TensorBoard shows it, with Megatron-LM's names for its curves.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/observers/run_scale.h"
#include "telemetry/dispensable_log.h"
#include "telemetry/tensorboard_log.h"

namespace teratron {

// A folder that the checkpoint alone names is written to where a run has written records before: who sends a checkpoint
// does not choose where this machine is written to.
bool writes_tensorboard(const TrainConfig& config);

// UserError where a run that does not go on from a checkpoint would mix its records with those of another.
void prepare_tensorboard(const TrainConfig& config);

class TensorBoardObserver final : public TrainingObserver {
 public:
  // Writes to --tensorboard-dir. `start`, `keeps_validation` and `tell`: as MetricsObserver's.
  TensorBoardObserver(const TrainConfig& config, RunScale scale, std::int64_t start, bool keeps_validation,
                      std::function<void(const std::string&)> tell);

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
