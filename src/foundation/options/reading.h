// Values for a list of fields: defaults, then a TOML file, then the command line. Every fault is collected, one line
// each, so that the user sees all of them at once and before anything starts.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
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

using FaultLines = std::vector<std::string>;        // for people
inline constexpr std::size_t kMostFaultsTold = 20;  // more are counted

// Reads `--flag value`, `--flag=value`, `--switch`, `--switch=false` and arguments without a flag. A flag given twice
// counts the last time, unless it repeats (then values add up); a list takes all the values up to the next flag. After
// "--" there are no more flags.
std::vector<Setting> read_command_line(FieldList& fields, std::span<const std::string> arguments, FaultLines& lines);

// The texts of configuration files, each read once: a pipe gives its text to the first reader alone.
class ConfigFiles {
 public:
  // UserError as read_file, and the same one again where it is asked for again.
  const std::string& text(const std::filesystem::path& path);

 private:
  struct Content {
    std::string text, fault;
  };
  std::map<std::filesystem::path, Content> contents_;
};

// Reads TOML of `hidden_size = 768` lines, without tables. `name`: of the file, for messages. UserError: no TOML.
std::vector<Setting> read_config(FieldList& fields, std::string_view text, const std::string& name, FaultLines& lines);

// What a user wrote, for messages: of long text the beginning, and how long it is.
std::string shortened(std::string_view text);
// A message without control characters, which would cut it (zero) or command the terminal: "\x1b" in place of the byte.
// Line ends and tabs stay.
std::string printable(std::string_view message);

// Stores the values, in the order of the fields (not of the settings), so that a preset comes before what refines it.
void apply_settings(FieldList& fields, std::span<const Setting> settings, FaultLines& lines);

// All of the above: the configuration file that the command line names, then the command line, then what is missing.
// Who reads a command line twice keeps `files`.
FaultLines read_fields(FieldList& fields, std::span<const std::string> arguments);
FaultLines read_fields(FieldList& fields, std::span<const std::string> arguments, ConfigFiles& files);

// Adds faults of the values themselves, each with the file and line of every value in it that came from a file. A fault
// of a value that is already reported is left out.
void add_value_faults(const FieldList& fields, const Faults& faults, FaultLines& lines);

// UserError with the first kMostFaultsTold of them and the number of the others; nothing happens if there are none.
void throw_if_any(const FaultLines& lines);

// Options from a command line, checked; `options` are the defaults. `Options` has a fields_of(Options&) and may have a
// member Faults faults(). UserError with all faults: of the file, of the line and of the values.
template <class Options>
Options read_options(std::span<const std::string> arguments, Options options) {
  FieldList fields = fields_of(options);
  FaultLines lines = read_fields(fields, arguments);
  Faults faults = fields.range_faults();
  if constexpr (requires { options.faults(); }) faults.add(options.faults());
  add_value_faults(fields, faults, lines);
  throw_if_any(lines);
  return options;
}

template <class Options>
Options read_options(std::span<const std::string> arguments) {
  return read_options(arguments, Options());
}

}  // namespace teratron
