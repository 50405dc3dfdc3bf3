// The settings of `teratron train` from its arguments, and from where the run starts.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "checkpoint/native/checkpoint.h"
#include "train/config/config.h"
#include "train/config/given_pipeline.h"

namespace teratron {

struct TrainStart {
  TrainConfig config;                        // without faults; with `load`, `finetune` is where that run began
  std::optional<CheckpointInfo> checkpoint;  // of `load`
  GivenPipeline given;                       // by the arguments and --config FILE
};

// Defaults < the checkpoint's record (of --load) or its shape and tokenizer (of --finetune) < --config FILE < command
// line. A layout is taken as a whole: with one of --tp, --pp and --dp nothing of the checkpoint's layout and pipeline
// is. Without --save a resumed run saves where it was saved. Where both --load and --finetune are given, the first
// counts if it holds a checkpoint, so that a job that is started again goes on. UserError: all faults; no checkpoint;
// another run than the checkpoint's (resume_rules.h).
TrainStart read_train_start(std::span<const std::string> arguments);

}  // namespace teratron
