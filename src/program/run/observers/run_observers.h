// The observers that every run has.
#pragma once

#include "run/observers/observer_list.h"
#include "train/trainer.h"

namespace teratron {

// Progress on standard error, and where they are asked for metrics.jsonl in --save and records in --tensorboard-dir, of
// a started run that goes on after `done` iterations. `peak_flops`: a second, of all ranks together, which MFU is
// counted against. A file that cannot be written (a full disk) is told of once, and the run goes on.
void add_run_observers(ObserverList& list, const TrainConfig& config, const Trainer& trainer, std::int64_t done,
                       double peak_flops);

}  // namespace teratron
