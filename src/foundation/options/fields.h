// List of a command's options: every field of an options struct with its flag, its help and a reference to its value.
// The command line, the TOML file, --help, the start-up table and the saved configuration all use this list.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/faults.h"

namespace teratron {

// Enum field: its values by name.
struct Choice {
  std::vector<std::string> names;
  std::function<std::size_t()> get;  // index of the current value in `names`
  std::function<void(std::size_t)> set;
  const void* address = nullptr;  // the value's
};

// Reference to a field's value. The options struct must outlive the list.
using FieldTarget = std::variant<std::int64_t*, double*, bool*, std::string*, std::filesystem::path*,
                                 std::vector<std::filesystem::path>*, std::vector<std::int64_t>*, std::vector<double>*,
                                 std::vector<std::string>*, Choice>;

enum class FieldRole {
  kFlag,
  kHiddenFlag,  // flag that --help does not list
  kPositional,  // argument without a flag; required; a vector takes all that are left, at least one
  kConfigFile,  // flag that names a TOML file with values of the others
};

// Part of a run that a field decides. It determines whether a resumed run takes the checkpoint's value, may change it,
// and records it (train/config/resume_rules.h).
enum class FieldScope {
  kRun,        // the run from here on
  kModel,      // the model
  kPreset,     // a name for values of other fields, which alone count
  kLayout,     // distribution of the work over ranks, which never changes the result
  kData,       // the samples that are read, and their order
  kInput,      // files that are read: their content counts, not their path
  kSchedule,   // the learning rate of every update
  kOptimizer,  // the meaning of the optimizer's state
  kCommand,    // the command on this machine: --save, --threads
  kStart,      // this start of the command alone: --load, --json
};

// Content of a file that a command writes.
enum class FileContent { kOwn, kJson, kJsonLines };

struct Field {
  std::string name;  // without the dashes: "hidden-size"; in TOML hidden_size
  FieldTarget target;
  std::string value_name;  // for --help: "N", "DIR", ...
  std::string help;
  std::string group;  // heading in --help
  FieldScope scope = FieldScope::kRun;
  FieldRole role = FieldRole::kFlag;
  std::vector<std::string> written_endings;  // the command writes files named by the value and each ending; none: reads
  FileContent written_content = FileContent::kOwn;
  bool in_summary = false;  // a run's first lines show it in another form
  std::string alias;        // second name, without the dashes
  bool required = false;
  std::string bare;                // choice that the flag without a value means
  bool repeats = false;            // a flag gives one value of the list, and several flags add up
  std::function<void()> when_set;  // called after a value was given
  bool is_preset = false;          // when_set sets values of further fields, which may refine them
  std::optional<std::pair<std::int64_t, std::int64_t>> range;
  std::pair<std::string, double> word;    // word for one value of a double
  std::vector<std::string> known_values;  // values that help, errors and shells list; empty: a choice lists all

  // Set by reading.
  bool given = false;  // a value was given, valid or not
  bool wrong = false;  // the given value is not valid
  std::string origin;  // "configs/a.toml:12"; empty: the command line, or the default

  // Sets the range of a whole number; other values are faults (FieldList::range_faults).
  Field& between(std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    range = {least, most};
    return *this;
  }

  Field& of(FieldScope part) {
    scope = part;
    return *this;
  }
  Field& writes(FileContent content = FileContent::kOwn, std::vector<std::string> endings = {""}) {
    written_content = content;
    written_endings = std::move(endings);
    return *this;
  }
  Field& summarised() {
    in_summary = true;
    return *this;
  }

  const void* address() const;  // the value's
  bool is_of_command() const { return scope == FieldScope::kCommand || scope == FieldScope::kStart; }
  bool is_bool() const { return std::holds_alternative<bool*>(target); }
  bool is_list() const {  // takes several values at once
    if (repeats) return false;
    return std::holds_alternative<std::vector<std::filesystem::path>*>(target) ||
           std::holds_alternative<std::vector<std::int64_t>*>(target) ||
           std::holds_alternative<std::vector<double>*>(target) ||
           std::holds_alternative<std::vector<std::string>*>(target);
  }
  std::string display_name() const;  // name in messages: "--hidden-size"; a positional's value name
  bool is_word() const;              // whether the value is that of `word`
  std::string value_text() const;    // "0.1", "true", "cosine", "a.txt b.txt"
};

class FieldList {
 public:
  // Sets the heading and the default scope of fields added from here on.
  void group(std::string title, FieldScope scope = FieldScope::kRun) {
    group_ = std::move(title);
    scope_ = scope;
  }

  // Adds a field. The returned reference stays valid; further properties are set on it.
  Field& add(std::string name, FieldTarget target, std::string value_name, std::string help);
  Field& add_positional(FieldTarget target, std::string value_name, std::string help);

  template <class Enum>
  Field& add_choice(std::string name, Enum& value,
                    std::type_identity_t<std::vector<std::pair<std::string, Enum>>> choices, std::string help) {
    Choice choice;
    std::string names;  // "cosine|linear"
    for (const auto& [text, one] : choices) {
      names += (names.empty() ? "" : "|") + text;
      choice.names.push_back(text);
    }
    choice.get = [&value, choices] {
      std::size_t index = 0;
      while (index + 1 < choices.size() && choices[index].second != value) ++index;
      return index;
    };
    choice.set = [&value, choices](std::size_t index) { value = choices[index].second; };
    choice.address = &value;
    return add(std::move(name), std::move(choice), std::move(names), std::move(help));
  }

  // Field with this name or alias; nullptr: none. Positionals have no name.
  Field* find(std::string_view name);
  // Field of a value of the options. InternalError: it has none.
  template <class Value>
  Field& field_of(const Value& value) {
    return *at(&value);
  }
  // Removes the fields of values that a command decides itself.
  template <class... Values>
  void remove(const Values&... values) {
    (fields_.erase(at(&values)), ...);
  }
  Faults range_faults() const;

  auto begin() { return fields_.begin(); }
  auto end() { return fields_.end(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::list<Field>::iterator at(const void* address);

  std::list<Field> fields_;
  std::string group_ = "Options";
  FieldScope scope_ = FieldScope::kRun;
};

}  // namespace teratron
