// The options of a training run: groups of settings, filled from defaults < --config FILE < command line.
#pragma once

#include <string>
#include <vector>

#include "settings/sample_settings.h"
#include "settings/split_settings.h"
#include "settings/step_settings.h"
#include "train/config/failure_settings.h"
#include "train/config/optimizer_settings.h"
#include "train/config/output_settings.h"

namespace teratron {

// The values as the user gave them. A 0 that stands for "follows from another value" is resolved by member functions,
// so that a saved configuration can be read back and changed.
struct TrainConfig : StepSettings {
  std::int64_t train_iters = 0;  // updates in all; must be given
  OptimizerSettings optimizer;
  std::int64_t seed = 1234;  // of initial weights, dropout and the order of the data
  SplitSettings split;
  DocumentSettings documents;
  BertSettings bert;
  OutputSettings output;
  FailureSettings failures;
  // The words of data/data_path.h: one corpus, its shards, or a blend with weights.
  std::vector<std::string> data_path;        // must be given
  std::vector<std::string> valid_data_path;  // empty: the validation part that the split holds out

  LearningRateSchedule schedule() const { return optimizer.schedule(train_iters); }
  // Whether what comes every so many updates, and after the last one, comes after this one. `interval` 0: then alone.
  bool is_due(std::int64_t interval, std::int64_t iteration) const {
    return iteration == train_iters || (interval > 0 && iteration % interval == 0);
  }
  // The weights of training, validation and test; all is training where validation has data of its own.
  std::string parts() const;

  // Every fault and, where it helps, the nearest values that work.
  Faults faults() const;
};

// Faults: operations of the optimizer that the back end lacks.
Faults optimizer_backend_faults(const TrainConfig& config);

// The one list of the fields. `config` must outlive it. read_options<TrainConfig> (options/reading.h) reads them from
// the arguments after `teratron train`.
FieldList fields_of(TrainConfig& config);
// Adds the fields that decide updates, whatever the data: training, precision, layout and pipeline.
void add_update_fields(FieldList& list, TrainConfig& config);

// TOML that `teratron train --config` reads back to the same values.
std::string to_toml(TrainConfig config);

}  // namespace teratron
