// `teratron train` from code: pretraining on a tokenised corpus, on all ranks of a layout.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "run/run.h"
#include "train/config/start_reading.h"

namespace teratron {

struct PretrainingResult {
  TrainingResult training;                // the same in every process
  std::vector<std::int64_t> peak_memory;  // bytes, of every rank in order
  bool is_first_process = false;          // the process that reports
};

// Starts the ranks, trains, and returns in every process when its ranks have ended. training.signal is the signal that
// ended it, or 0. `prepare` may add observers to a rank's run. `start`: by read_train_start(). UserError,
// EnvironmentError: as Run::run(), and faults of the corpus and the tokenizer, before any rank starts.
PretrainingResult pretrain(const TrainStart& start, const std::function<void(Run&)>& prepare = {});

}  // namespace teratron
