// Everything a training run is told: one struct, filled from defaults < --config FILE < command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/batch_schedule.h"
#include "executor/options.h"
#include "model/config.h"
#include "optim/adamw_optimizer.h"
#include "optim/learning_rate.h"
#include "optim/loss_scaler.h"
#include "options/fields.h"
#include "pipeline/generators.h"
#include "runtime/backend_settings.h"
#include "runtime/ranks.h"
#include "train/split_settings.h"

namespace teratron {

// The values as the user gave them; a 0 that stands for "follows from another value" is resolved by the functions
// below, so that a saved configuration can be read back and changed.
struct TrainConfig : LayoutOptions, BackendSettings, SplitSettings {
  TrainConfig();

  std::string preset = "124M";  // sets the first three of `model`; explicit values override it
  ModelConfig model;            // vocab_size 0: the tokenizer's; max_position_embeddings 0: seq_length
  std::int64_t seq_length = 1024;

  std::int64_t train_iters = 0;  // must be given
  std::int64_t micro_batch_size = 4;
  std::int64_t global_batch_size = 0;           // 0: one micro-batch for each data-parallel rank
  std::vector<std::int64_t> rampup_batch_size;  // start, increment, samples (data/batch_schedule.h); empty: none
  std::int64_t seed = 1234;
  LearningRateSchedule learning_rate;  // decay 0: train_iters
  AdamWSettings optimizer;

  bool sequence_parallel = false, distributed_optimizer = false;
  Recompute recompute = Recompute::kNone;

  // Of the pipeline (train/pipeline_plan.h).
  std::optional<pipeline::ScheduleKind> pipeline_schedule;  // none: seq1f1b where tokens are sliced, else 1f1b
  std::int64_t virtual_stages = 1;                          // cells of a stage
  std::string pipeline_layout;                              // layers of each cell, "5,7"; empty: as many in each
  std::string token_slices;  // "704,688,656", "uniform:8" or "auto"; empty: sequences run whole
  bool defer_weight_gradients = false;
  std::filesystem::path profile;  // what slices cost; "auto" needs it

  LossScaling loss_scaling;  // fp16 only

  std::string data_path;  // PREFIX of PREFIX.bin and PREFIX.idx; must be given
  std::filesystem::path tokenizer;

  std::filesystem::path save, load;
  std::int64_t save_interval = 0;  // 0: at the end only
  std::int64_t keep_last = 0;      // 0: all
  std::int64_t log_interval = 10;
  std::int64_t eval_interval = 0;  // 0: at the end only
  std::int64_t eval_iters = 10;
  std::filesystem::path json;   // "-": standard output
  std::filesystem::path trace;  // what every stage did when

  std::int64_t logits_chunk = 256;  // rows of logits held at a time
  std::filesystem::path config_file;

  std::int64_t largest_batch() const {  // samples of an update, at the end of a ramp
    return global_batch_size > 0 ? global_batch_size : micro_batch_size * data_parallel;
  }
  BatchSchedule batches() const;
  LearningRateSchedule schedule() const;  // with the decay filled in
  // The model with its vocabulary and positions filled in; `data_vocab_size` is used where the user gave none.
  ModelConfig model_for(std::int64_t data_vocab_size) const;

  // Every fault and, where it helps, the nearest values that work.
  Faults faults() const;
};

// The one list of the fields. `config` must outlive it. read_options<TrainConfig> (config_reading.h) reads them from
// the arguments after `teratron train`.
FieldList fields_of(TrainConfig& config);

// What `teratron train --config` reads back to the same values.
std::string to_toml(TrainConfig config);

}  // namespace teratron
