// Reads values of a list of fields: defaults, then a TOML file, then the command line. Faults are collected as lines,
// so that the user sees all of them at once, before any work.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/faults.h"
#include "console/terminal_text.h"  // printable(), for messages
#include "options/fields.h"

namespace teratron {

enum class LiteralKind {
  kUntyped,  // of the command line: the field decides its type
  kInteger,
  kFloat,
  kBoolean,
  kText,
};

struct Literal {
  LiteralKind kind = LiteralKind::kUntyped;
  std::string text;
};

// Values of one field in one source.
struct Setting {
  Field* field = nullptr;
  std::vector<Literal> values;
  bool is_array = false;  // a TOML array
  std::string origin;     // "configs/a.toml:12"; empty: the command line
};

using FaultLines = std::vector<std::string>;         // for people
inline constexpr std::size_t kMostFaultsShown = 20;  // further ones are counted

// Reads `--flag value`, `--flag=value`, `--switch`, `--switch=false` and arguments without a flag. The last of equal
// flags counts, unless the field repeats. A list takes all values up to the next flag. After "--" there are no more
// flags.
std::vector<Setting> read_command_line(FieldList& fields, std::span<const std::string> arguments, FaultLines& lines);

// Texts of configuration files, each read once: only the first reader of a pipe gets its text.
class ConfigFiles {
 public:
  // Text of a file. UserError as read_file's, again at each call.
  const std::string& text(const std::filesystem::path& path);

 private:
  struct Content {
    std::string text, fault;
  };
  std::map<std::filesystem::path, Content> contents_;
};

// Reads TOML without tables: lines `hidden_size = 768`. `name`: the file's, for messages. UserError: not TOML.
std::vector<Setting> read_config(FieldList& fields, std::string_view text, const std::string& name, FaultLines& lines);

// Text of a user for messages: the beginning of a long text, and its length.
std::string shortened(std::string_view text);

// Stores the values of one source in the order of the fields: a preset stands before the fields that refine it, so its
// source's values of them win.
void apply_settings(FieldList& fields, std::span<const Setting> settings, FaultLines& lines);

// Reads the configuration files that the command line names, in its order, then the command line, then looks for
// missing fields. A preset of the command line (Field::is_preset) replaces what belongs to another preset of a file,
// and a file without one refines it. A caller that reads a command line twice keeps `files`.
FaultLines read_fields(FieldList& fields, std::span<const std::string> arguments);
FaultLines read_fields(FieldList& fields, std::span<const std::string> arguments, ConfigFiles& files);

// Adds faults of values, each with the file and line of every value in it that came from a file. Skips faults of values
// that are already reported.
void add_value_faults(const FieldList& fields, const Faults& faults, FaultLines& lines);

// Throws a UserError with the first kMostFaultsShown lines and the number of the others, if there are any lines.
void throw_if_any(const FaultLines& lines);

// Reads and checks options; `options` has the defaults. `Options` has a fields_of(Options&) and may have a member
// Faults faults(). UserError: all faults of the file, the line and the values.
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
