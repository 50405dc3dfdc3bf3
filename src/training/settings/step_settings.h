// Settings of a training step: model, batch, layout over ranks. `train` runs such steps, `profile` measures them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "data/batch_schedule.h"
#include "executor/options.h"
#include "settings/backend_settings.h"
#include "settings/layout_settings.h"
#include "settings/model_settings.h"
#include "settings/pipeline_settings.h"

namespace teratron {

// Samples of an update and of a micro-batch.
struct BatchSettings {
  std::int64_t micro_batch_size = 4;
  std::int64_t global_batch_size = 0;           // 0: one micro-batch for each data-parallel rank
  std::vector<std::int64_t> rampup_batch_size;  // start, increment, samples (data/batch_schedule.h); empty: none
  std::int64_t samples_together = 1;            // sequences of a task's example; batches are multiples; no flag

  std::int64_t largest_batch(std::int64_t data_parallel) const {  // samples of an update after the ramp
    return global_batch_size > 0 ? global_batch_size : micro_batch_size * data_parallel;
  }
  BatchSchedule batches(std::int64_t data_parallel, const BatchesDone& done = {}) const;
  Faults faults(std::int64_t data_parallel) const;
};

void add_micro_batch_size_field(FieldList& list, BatchSettings& settings);
void add_global_batch_fields(FieldList& list, BatchSettings& settings);

struct StepSettings {
  ModelSettings model;
  BatchSettings batch;
  TrainingLayoutSettings layout;
  PipelineSettings pipeline;
  BackendSettings backend;
  std::int64_t logits_chunk = 0;  // rows of logits in memory; 0: 1 KB per column on CPUs, on GPUs as memory allows
  std::filesystem::path config_file;

  std::int64_t rows_of_logits() const {  // 0: as memory allows
    return logits_chunk == 0 && backend.kind != BackendKind::kCuda ? 1024 / size_of(backend.compute_dtype())
                                                                   : logits_chunk;
  }
  // ExecutorOptions::kept_layers.
  std::optional<std::int64_t> kept_layers() const {
    const bool makes_all_again = layout.recomputation().uniform().value_or(Recompute::kNone) != Recompute::kNone;
    if (makes_all_again || layout.keep_activations == KeepActivations::kNone) return 0;
    if (layout.keep_activations == KeepActivations::kAll) return model.config.num_layers;
    return backend.kind == BackendKind::kCuda ? std::nullopt : std::optional<std::int64_t>(0);
  }
  // ExecutorOptions::packed_weights.
  std::optional<WeightPacking> weight_packing() const;
  std::int64_t largest_batch() const { return batch.largest_batch(layout.data_parallel); }
  std::int64_t largest_share() const {  // samples of that batch on the copy of the model with the most
    return (largest_batch() / batch.samples_together + layout.data_parallel - 1) / layout.data_parallel *
           batch.samples_together;
  }
  std::int64_t vocabulary_ranks() const {  // that have a part of the vocabulary each
    return layout.tensor_parallel * (pipeline.vocabulary_parallel ? layout.pipeline_parallel : 1);
  }
  // Sequences of a rank's micro-batches, in order; the last number holds for all that follow. With joint slices it is
  // the most.
  std::vector<std::int64_t> micro_batch_sizes() const;
  BatchSchedule batches(const BatchesDone& done = {}) const { return batch.batches(layout.data_parallel, done); }
  // Faults of all groups and of their combination.
  Faults faults() const;
};

// Layers of each cell: those of --pipeline-layout, or equal numbers, where the first cells take the rest.
std::vector<std::int64_t> cell_layers(const StepSettings& settings);

// Faults of the pipeline in this model and layout. Values of other groups may be invalid.
Faults pipeline_faults(const StepSettings& settings);

// Adds back end, threads, memory and --config under their own heading.
void add_machine_fields(FieldList& list, StepSettings& settings);

}  // namespace teratron
