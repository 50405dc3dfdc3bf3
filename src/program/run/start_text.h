// The lines that a training run begins with: in less than a screen what matters, with --verbose all settings.
#pragma once

#include <span>
#include <string>

#include "checkpoint/native/checkpoint.h"
#include "runtime/memory_table.h"
#include "train/trainer.h"

namespace teratron {

struct StartText {
  const TrainConfig& config;
  const CheckpointInfo* checkpoint;  // that the run goes on from; nullptr: none
  const Trainer& trainer;
  std::string ranks;  // "4 ranks (...) as ..."; empty: one
  std::span<const RankMemory> memory;

  // Lines, the last one without its end.
  std::string text(const Backend& backend) const;
};

// The line after the checkpoint is loaded: where the run stands, and what the learning rate will do where there are
// more updates than the checkpoint's run was to have. `done`: updates of the checkpoint; 0: nothing is said.
std::string text_of_progress(const TrainConfig& config, const CheckpointInfo* checkpoint, std::int64_t done,
                             bool has_work);

}  // namespace teratron
