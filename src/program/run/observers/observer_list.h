// Observers of a run.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/host/monotonic_clock.h"
#include "run/observers/memory_gauge.h"
#include "train/trainer.h"

namespace teratron {

// Passes every event to each observer, in order. Updates of less than a tenth of a second are passed on together, ten
// times a second: an update evicts the observers from the caches, so the first report costs several times as much as
// the next.
class ObserverList final : public TrainingObserver {
 public:
  ObserverList() = default;
  ObserverList(const ObserverList&) = delete;
  ObserverList& operator=(const ObserverList&) = delete;
  ~ObserverList() override;  // passes on the reports held back, also after an error

  void add(std::unique_ptr<TrainingObserver> observer) { observers_.push_back(std::move(observer)); }

  void iteration(const IterationReport& report) override;
  void validation(std::int64_t iteration, const LossSums& losses) override;
  void scored(std::int64_t iteration, std::span<const TaskScore> scores) override;
  void sample(std::int64_t iteration, const std::string& prompt, std::span<const std::int32_t> tokens) override;
  void saved(std::int64_t iteration, const std::filesystem::path& folder) override;
  void notice(const std::string& text) override;
  void flush() override;

 private:
  std::vector<std::unique_ptr<TrainingObserver>> observers_;
  std::vector<IterationReport> held_back_;
  double passed_on_at_ = monotonic_seconds();
};

// Adds the observers of every run: progress on standard error, and where they are asked for metrics.jsonl in --save and
// records in --tensorboard-dir. The run has started and resumes after `done` iterations. `peak_flops`: per second, of
// all ranks together, for MFU. `memory`: nullptr: no log has it. A file that cannot be written (a full disk) is
// reported once, and the run goes on.
void add_run_observers(ObserverList& list, const TrainConfig& config, const Trainer& trainer, std::int64_t done,
                       double peak_flops, std::shared_ptr<MemoryGauge> memory);

}  // namespace teratron
