// First lines of a training run: less than a screen, or all settings with --verbose.
#pragma once

#include <span>
#include <string>

#include "checkpoint/native/checkpoint.h"
#include "runtime/memory_table.h"
#include "train/trainer.h"

namespace teratron {

struct StartText {
  const TrainConfig& config;
  const CheckpointInfo* checkpoint;  // the run resumes from it; nullptr: none
  const Trainer& trainer;
  std::string ranks;  // "4 ranks (...) as ..."; empty: one rank
  std::span<const RankMemory> memory;

  // Lines; the last has no line end.
  std::string text(const Backend& backend) const;
};

// Line after the checkpoint was loaded: its progress of `done` updates, and the future of the learning rate if
// --train-iters has grown. Empty without a checkpoint.
std::string text_of_progress(const TrainConfig& config, const CheckpointInfo* checkpoint, std::int64_t done,
                             bool has_work);

}  // namespace teratron
