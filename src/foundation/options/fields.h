// The options of a command, listed once: every field of an options struct with its flag, its help and a reference to
// its value. The command line, the TOML file, --help, the start-up table and the saved configuration all walk this
// list.
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

// An enum field: its values by name.
struct Choice {
  std::vector<std::string> names;
  std::function<std::size_t()> get;  // index of the current value in `names`
  std::function<void(std::size_t)> set;
  const void* address = nullptr;  // of the value
};

// The place where a field's value lives. The struct it is part of must outlive the list.
using FieldTarget = std::variant<std::int64_t*, double*, bool*, std::string*, std::filesystem::path*,
                                 std::vector<std::filesystem::path>*, std::vector<std::int64_t>*, std::vector<double>*,
                                 std::vector<std::string>*, Choice>;

enum class FieldRole {
  kFlag,
  kHiddenFlag,  // a flag that --help does not list
  kPositional,  // an argument without a flag; all of them are needed, and a vector takes what is left (one at least)
  kConfigFile,  // a flag that names a TOML file with values for the others
};

// The part of a run that a field decides. What a run that goes on keeps of its checkpoint, what it may change and what
// its record leaves out follow from it (train/config/resume_rules.h).
enum class FieldScope {
  kRun,        // what the run does from here on
  kModel,      // what the model is
  kPreset,     // a name for values of other fields, which are what counts
  kLayout,     // how the work lies on ranks; it never changes the result
  kData,       // which samples are read, and in what order
  kInput,      // files that are read: their content counts, not their place
  kSchedule,   // the learning rate of every update
  kOptimizer,  // what the optimizer's state means
  kCommand,    // the command, on this machine: where to save, how many threads
  kStart,      // this start of the command alone: what it resumes, what it reports at its end
};

// The content of a file that a command writes.
enum class FileContent { kOwn, kJson, kJsonLines };

struct Field {
  std::string name;  // without the dashes: "hidden-size"; in TOML hidden_size
  FieldTarget target;
  std::string value_name;  // for --help: "N", "DIR", ...
  std::string help;
  std::string group;  // the heading it stands under
  FieldScope scope = FieldScope::kRun;
  FieldRole role = FieldRole::kFlag;
  std::vector<std::string> written_endings;  // files to write: the value with each of these; none: the value is read
  FileContent written_content = FileContent::kOwn;
  bool in_summary = false;         // a run's first lines have words of their own for it
  std::string alias;               // a second name, without the dashes
  bool required = false;           // the user must give it
  std::string bare;                // of a choice: the value where none is given; a flag that may stand alone
  bool repeats = false;            // of a list: a flag gives one value of it, and several flags add up
  std::function<void()> when_set;  // runs after a value was given
  std::optional<std::pair<std::int64_t, std::int64_t>> range;
  std::pair<std::string, double> word;    // of a number that is no whole one: a word that stands for this value
  std::vector<std::string> known_values;  // of a text: what shells complete

  // Set by reading.
  bool given = false;  // a value was given, right or wrong
  bool wrong = false;  // the value given could not be used
  std::string origin;  // "configs/a.toml:12"; empty: the command line, or the default

  // The range of a whole number: a value outside of it is a fault (FieldList::range_faults).
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

  const void* address() const;  // of the value
  bool is_of_command() const { return scope == FieldScope::kCommand || scope == FieldScope::kStart; }
  bool is_bool() const { return std::holds_alternative<bool*>(target); }
  bool is_list() const {  // takes several values at once
    if (repeats) return false;
    return std::holds_alternative<std::vector<std::filesystem::path>*>(target) ||
           std::holds_alternative<std::vector<std::int64_t>*>(target) ||
           std::holds_alternative<std::vector<double>*>(target) ||
           std::holds_alternative<std::vector<std::string>*>(target);
  }
  std::string display_name() const;  // as in messages: "--hidden-size"; positionals without a name by their value's
  bool is_word() const;              // the value is that of `word`
  std::string value_text() const;    // "0.1", "true", "cosine", "a.txt b.txt"
};

class FieldList {
 public:
  // Fields added from here on stand under this heading and, unless they say otherwise, decide this part of a run.
  void group(std::string title, FieldScope scope = FieldScope::kRun) {
    group_ = std::move(title);
    scope_ = scope;
  }

  // References stay valid; further properties are set on what is returned.
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

  // The field with this name or alias; nullptr if there is none. Positionals have no name.
  Field* find(std::string_view name);
  // The field of a value of the options. InternalError if it has none.
  template <class Value>
  Field& field_of(const Value& value) {
    return *at(&value);
  }
  // Takes the fields of these values out: a command that decides them itself.
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
