// Values for a list of fields: defaults, then a TOML file, then the command line. Every fault is collected, one line
// each, so that the user sees all of them at once and before anything starts.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/faults.h"
#include "options/fields.h"

namespace teratron {

enum class LiteralKind {
  kUntyped,  // from the command line: the field decides what it is
  kInteger,
  kFloat,
  kBoolean,
  kText,
};

struct Literal {
  LiteralKind kind = LiteralKind::kUntyped;
  std::string text;
};

// What one source says about one field.
struct Setting {
  Field* field = nullptr;
  std::vector<Literal> values;
  bool is_array = false;  // several values were written, or a TOML array
  std::string origin;     // "configs/a.toml:12"; empty: the command line
};

using FaultLines = std::vector<std::string>;  // for people

// Reads `--flag value`, `--flag=value`, `--switch`, `--switch=false` and arguments without a flag. A flag given twice
// counts the last time, unless it repeats (then values add up); a list takes all the values up to the next flag. After
// "--" there are no more flags.
std::vector<Setting> read_command_line(FieldList& fields, std::span<const std::string> arguments, FaultLines& lines);

// Reads a TOML file of `hidden_size = 768` lines, without tables.
std::vector<Setting> read_config_file(FieldList& fields, const std::filesystem::path& path, FaultLines& lines);

// Stores the values, in the order of the fields (not of the settings), so that a preset comes before what refines it.
void apply_settings(FieldList& fields, std::span<const Setting> settings, FaultLines& lines);

// All of the above: the configuration file that the command line names, then the command line, then what is missing.
FaultLines read_fields(FieldList& fields, std::span<const std::string> arguments);

// Adds faults of the values themselves, each with the file and line of every value in it that came from a file. A fault
// of a value that is already reported is left out.
void add_value_faults(const FieldList& fields, const Faults& faults, FaultLines& lines);

// UserError with all of them; nothing happens if there are none.
void throw_if_any(const FaultLines& lines);

// Options from a command line, checked. `Options` has a fields_of(Options&) and may have a member Faults faults().
// UserError with all faults: of the file, of the line and of the values.
template <class Options>
Options read_options(std::span<const std::string> arguments) {
  Options options;
  FieldList fields = fields_of(options);
  FaultLines lines = read_fields(fields, arguments);
  Faults faults = fields.range_faults();
  if constexpr (requires { options.faults(); }) faults.add(options.faults());
  add_value_faults(fields, faults, lines);
  throw_if_any(lines);
  return options;
}

}  // namespace teratron
