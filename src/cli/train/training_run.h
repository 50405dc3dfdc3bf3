// A run of a Trainer as `train` and `finetune` have it: reported to people, its folder locked, ended by signals.
#pragma once

#include <string>

#include "cli/train/train_start.h"
#include "runtime/end_signals.h"
#include "runtime/ranks.h"
#include "train/plans/memory_remedies.h"

namespace teratron {

struct TrainingRun {
  const TrainConfig& config;
  const CheckpointInfo* checkpoint;  // that it goes on from; nullptr: none
  double began;                      // of the command, on the monotonic clock
  EndSignals& end_signals;
  std::string layout;        // for people
  MemoryPlanContext memory;  // of the model, for advice where memory is short
  double peak_flops;         // a second, of all ranks together
  HasFlag has_flag = {};     // of the command, where it lacks some of train's
};

// What the ranks of the world can reach, or what --peak-tflops says of each. Every rank calls it.
double peak_flops_of(const TrainConfig& config, Backend& backend, const Rank& rank);

// The trace of --trace, after the run. Every rank calls it.
void write_trace(const TrainConfig& config, const Trainer& trainer, const Rank& rank);

// Every rank calls it with a trainer that has not started. UserError, EnvironmentError: as Trainer and
// base/files/save_lock.h, and where memory is short. A run that has nothing left to do changes no file. Logs, traces
// and lines for people that cannot be written end no run.
TrainingResult run_training(const TrainingRun& run, Trainer& trainer, Backend& backend, const Rank& rank);

}  // namespace teratron
