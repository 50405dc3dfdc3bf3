// A run as a person watches it: lines on standard error, or one live line on a terminal.
#pragma once

#include <string>

#include "run/observers/run_scale.h"
#include "telemetry/progress.h"

namespace teratron {

class ProgressObserver final : public TrainingObserver {
 public:
  ProgressObserver(const TrainConfig& config, RunScale scale);

  void iteration(const IterationReport& report) override;
  void validation(std::int64_t iteration, const LossSums& losses) override;
  void scored(std::int64_t iteration, std::span<const TaskScore> scores) override;
  void sample(std::int64_t iteration, const std::string& prompt, std::span<const std::int32_t> tokens) override;
  void saved(std::int64_t iteration, const std::filesystem::path& folder) override;
  void notice(const std::string& text) override { progress_.message(text); }

 private:
  RunScale scale_;
  Progress progress_;
};

}  // namespace teratron
