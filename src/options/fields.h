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
};

// Where the value of a field lives. The struct it is part of must outlive the list.
using FieldTarget = std::variant<std::int64_t*, double*, bool*, std::string*, std::filesystem::path*,
                                 std::vector<std::filesystem::path>*, std::vector<std::int64_t>*, std::vector<double>*,
                                 std::vector<std::string>*, Choice>;

enum class FieldRole {
  kFlag,
  kHiddenFlag,  // a flag that --help does not list
  kPositional,  // an argument without a flag; all of them are needed, and a vector takes what is left (one at least)
  kConfigFile,  // a flag that names a TOML file with values for the others
};

struct Field {
  std::string name;  // without the dashes: "hidden-size"; in TOML hidden_size
  FieldTarget target;
  std::string value_name;  // for --help: "N", "DIR", ...
  std::string help;
  std::string group;  // the heading it stands under
  FieldRole role = FieldRole::kFlag;
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

  // Of a whole number, whatever else is set: a value outside of it is a fault (FieldList::range_faults).
  Field& between(std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    range = {least, most};
    return *this;
  }

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
  // Fields added from here on stand under this heading.
  void group(std::string title) { group_ = std::move(title); }

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
    return add(std::move(name), std::move(choice), std::move(names), std::move(help));
  }

  // The field with this name or alias; nullptr if there is none. Positionals have no name.
  Field* find(std::string_view name);
  Faults range_faults() const;

  auto begin() { return fields_.begin(); }
  auto end() { return fields_.end(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::list<Field> fields_;
  std::string group_ = "Options";
};

}  // namespace teratron
