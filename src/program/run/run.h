// A training run as a program has it: its folder is locked, its memory is there before it is taken, it goes on from a
// checkpoint, signals end it after a save, and observers report it.
#pragma once

#include <memory>

#include "run/observers/observer_list.h"
#include "run/run_launch.h"
#include "train/plans/memory_remedies.h"
#include "train/trainer.h"

namespace teratron {

struct RunSetup {
  RunLaunch& launch;
  const Rank& rank;
  Backend& backend;
  const TrainConfig& config;
  const CheckpointInfo* checkpoint = nullptr;  // that it goes on from: of config.output.load
  const slicing::Profile* profile = nullptr;   // measured costs of slices
  HasFlag has_flag = {};                       // of the command, where it lacks some of train's; for advice
};

// One rank's part of a run; every rank of the layout makes its own.
class Run {
 public:
  Run(const RunSetup& setup, TrainingTask task);

  Trainer& trainer() { return trainer_; }

  // Beside the run's own observers: progress on standard error, metrics.jsonl in --save, --tensorboard-dir. The first
  // rank alone tells them anything.
  void add(std::unique_ptr<TrainingObserver> observer) { observers_.add(std::move(observer)); }

  // From the first update, or the checkpoint's, to the last, or to the one after which all ranks agree to end. Every
  // rank calls it, once. A run that has nothing left to do changes no file. Logs and traces that cannot be written end
  // no run. UserError, EnvironmentError: as Trainer and base/files/save_lock.h, and where memory is short.
  TrainingResult run();

 private:
  std::int64_t start();
  TrainingResult run_first_rank(std::int64_t done, const RunControl& control, double peak_flops);
  void write_trace();
  const TrainConfig& config() const { return setup_.config; }

  const RunSetup setup_;
  Trainer trainer_;
  ObserverList observers_;
};

}  // namespace teratron
