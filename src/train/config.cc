#include "train/config.h"

#include "options/output.h"

namespace teratron {

Faults TrainConfig::faults() const {
  Faults faults = StepSettings::faults();
  faults.add(OptimizerSettings::faults());
  faults.add(SplitSettings::faults());
  faults.add(DocumentSettings::faults(tokenizer));
  faults.add(OutputSettings::faults());
  return faults;
}

FieldList fields_of(TrainConfig& c) {
  FieldList list;
  add_model_fields(list, c);

  list.group("Training");
  add_seq_length_field(list, c);
  add_micro_batch_size_field(list, c);
  add_global_batch_fields(list, c);
  add_optimizer_fields(list, c);

  list.group("Precision");
  add_training_precision_fields(list, c);
  add_loss_scaling_fields(list, c.loss_scaling);

  add_training_layout_fields(list, c);
  add_pipeline_fields(list, c);

  list.group("Data");
  list.add("data-path", &c.data_path, "PREFIX", "tokens, as PREFIX.bin and PREFIX.idx (teratron data tokenize)")
      .required = true;
  add_tokenizer_field(list, c);
  add_split_fields(list, c);
  add_document_fields(list, c);

  add_output_fields(list, c);
  add_machine_fields(list, c);
  return list;
}

std::string to_toml(TrainConfig config) { return to_toml(fields_of(config)); }

}  // namespace teratron
