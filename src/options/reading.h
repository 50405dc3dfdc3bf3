// Values for a list of fields: defaults, then a TOML file, then the command line. Every fault is collected, one line
// each, so that the user sees all of them at once and before anything starts.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

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

using Faults = std::vector<std::string>;

// Reads `--flag value`, `--flag=value`, `--switch`, `--switch=false` and arguments without a flag. A flag given twice
// counts the last time; a list takes all the values up to the next flag. After "--" there are no more flags.
std::vector<Setting> read_command_line(FieldList& fields, std::span<const std::string> arguments, Faults& faults);

// Reads a TOML file of `hidden_size = 768` lines, without tables.
std::vector<Setting> read_config_file(FieldList& fields, const std::filesystem::path& path, Faults& faults);

// Stores the values, in the order of the fields (not of the settings), so that a preset comes before what refines it.
void apply_settings(FieldList& fields, std::span<const Setting> settings, Faults& faults);

// All of the above: the configuration file that the command line names, then the command line, then what is missing.
Faults read_fields(FieldList& fields, std::span<const std::string> arguments);

// Adds faults found in the values themselves, which name their flags: those of values that came from a file are told
// its line, and what follows from a value that is already reported is left out.
void add_value_faults(const FieldList& fields, std::span<const std::string> value_faults, Faults& faults);

// UserError with all of them; nothing happens if there are none.
void throw_if_any(const Faults& faults);

// Options from a command line, checked. `Options` has a fields_of(Options&) and may have a member faults() that returns
// lines as add_value_faults takes them. UserError with all faults: of the file, of the line and of the values.
template <class Options>
Options read_options(std::span<const std::string> arguments) {
  Options options;
  FieldList fields = fields_of(options);
  Faults faults = read_fields(fields, arguments);
  if constexpr (requires { options.faults(); }) add_value_faults(fields, options.faults(), faults);
  throw_if_any(faults);
  return options;
}

}  // namespace teratron
