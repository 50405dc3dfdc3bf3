// A training step: the model, its batch and how it is laid out over ranks. `train` runs such steps, `profile` measures
// them.
#pragma once

#include "settings/backend_settings.h"
#include "settings/batch_settings.h"
#include "settings/layout_settings.h"
#include "settings/model_settings.h"
#include "settings/pipeline_settings.h"

namespace teratron {

struct StepSettings {
  ModelSettings model;
  BatchSettings batch;
  TrainingLayoutSettings layout;
  PipelineSettings pipeline;
  BackendSettings backend;
  std::int64_t logits_chunk = 0;  // rows of logits held at a time; 0: 1 KB a column on CPUs, on GPUs as memory allows
  std::filesystem::path config_file;

  std::int64_t rows_of_logits() const {  // 0: as memory allows
    return logits_chunk == 0 && backend.kind != BackendKind::kCuda ? 1024 / size_of(backend.compute_dtype())
                                                                   : logits_chunk;
  }
  std::int64_t largest_batch() const { return batch.largest_batch(layout.data_parallel); }
  std::int64_t largest_share() const {  // samples of that batch on the copy of the model that has most of them
    return (largest_batch() / batch.samples_together + layout.data_parallel - 1) / layout.data_parallel *
           batch.samples_together;
  }
  // Sequences of a rank's micro-batches, in order; the last one stands for all that follow. Where they are to be
  // chosen, the most.
  std::vector<std::int64_t> micro_batch_sizes() const;
  BatchSchedule batches(const BatchesDone& done = {}) const { return batch.batches(layout.data_parallel, done); }
  // Of all groups, and of what they say together.
  Faults faults() const;
};

// Layers of each cell: those of --pipeline-layout, or as many in each, the first ones one more where they don't divide.
std::vector<std::int64_t> cell_layers(const StepSettings& settings);

// Of the pipeline in this model and layout. Values of other groups may be anything.
Faults pipeline_faults(const StepSettings& settings);

// Back end, threads, memory and --config, under a heading of their own.
void add_machine_fields(FieldList& list, StepSettings& settings);

}  // namespace teratron
