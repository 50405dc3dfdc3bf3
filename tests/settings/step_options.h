// The settings of a step as the options of a command.
#pragma once

#include "settings/step_settings.h"

namespace teratron::testing {

inline FieldList fields_of(StepSettings& settings) {
  FieldList list;
  add_model_fields(list, settings.model);
  add_seq_length_field(list, settings.model);
  add_micro_batch_size_field(list, settings.batch);
  add_global_batch_fields(list, settings.batch);
  add_training_precision_fields(list, settings.backend);
  add_training_layout_fields(list, settings.layout);
  add_pipeline_fields(list, settings.pipeline);
  add_machine_fields(list, settings);
  return list;
}

}  // namespace teratron::testing
