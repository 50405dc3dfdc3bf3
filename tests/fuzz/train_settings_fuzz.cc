// The file of --config of `teratron train`, with its checks.
#include "fuzz.h"
#include "options/reading.h"
#include "train/config/config.h"

void teratron::fuzz::parse(std::string_view input) {
  TrainConfig config;
  FieldList fields = fields_of(config);
  FaultLines lines;
  apply_settings(fields, read_config(fields, input, "a.toml", lines), lines);
  add_value_faults(fields, config.faults(), lines);
  if (lines.empty()) to_toml(config);
}
