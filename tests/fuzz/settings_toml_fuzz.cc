// A file of settings: what is read without a fault is written and read again to the same values.
#include "fuzz.h"
#include "options/output.h"
#include "options/reading.h"
#include "options_for_fuzzing.h"

namespace teratron::fuzz {
namespace {

FaultLines read(Options& options, std::string_view text) {
  FieldList fields = fields_of(options);
  FaultLines lines;
  apply_settings(fields, read_config(fields, text, "a.toml", lines), lines);
  return lines;
}

std::string written(Options& options) {
  return to_toml(fields_of(options), [](const Field& field) { return field.role == FieldRole::kPositional; });
}

}  // namespace

void parse(std::string_view input) {
  Options first, second;
  for (const std::string& line : read(first, input)) printable(line);
  const std::string text = written(first);
  require(read(second, text).empty(), "settings that were written are read without a fault");
  require(written(second) == text, "settings that were written are read to the same values");
}

}  // namespace teratron::fuzz
