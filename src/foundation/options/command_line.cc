// Reads a command line by a list of fields. It reports all faults of a line at once, together with those of the
// configuration file; libraries stop at the first.
#include <algorithm>

#include "base/error.h"
#include "options/foreign_flags.h"
#include "options/reading.h"
#include "options/suggestion.h"

namespace teratron {
namespace {

bool is_flag(std::string_view argument) {
  // "-x" is a flag, which has one letter. "-" is standard input or output, "-3" a number, "-abc" a value.
  return argument.starts_with("--") ||
         (argument.size() == 2 && argument[0] == '-' && !(argument[1] >= '0' && argument[1] <= '9'));
}

class CommandLineReader {
 public:
  CommandLineReader(FieldList& fields, std::span<const std::string> arguments, FaultLines& lines)
      : fields_(fields), arguments_(arguments), lines_(lines) {
    for (Field& field : fields) {
      if (field.role == FieldRole::kPositional) positionals_.push_back(&field);
    }
  }

  std::vector<Setting> read() {
    bool flags_ended = false;
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (argument == "--" && !flags_ended) {
        flags_ended = true;
      } else if (is_flag(argument) && !flags_ended) {
        read_flag(argument);
      } else {
        read_positional(argument);
      }
    }
    return std::move(settings_);
  }

 private:
  void read_flag(std::string_view argument) {
    const std::size_t equals = argument.find('=');
    const std::string_view flag = argument.substr(0, equals);
    Field* field = flag.starts_with("--") ? fields_.find(flag.substr(2)) : nullptr;
    if (field == nullptr) {
      report_unknown(flag);
      if (equals == std::string_view::npos) skip_values();
      return;
    }
    Setting& setting = settings_.emplace_back(Setting{.field = field});
    if (equals != std::string_view::npos) {
      setting.values.push_back({LiteralKind::kUntyped, std::string(argument.substr(equals + 1))});
    } else if (field->is_bool()) {
      setting.values.push_back({LiteralKind::kUntyped, "true"});
    } else if (!field->bare.empty() && !choice_follows(*field)) {
      setting.values.push_back({LiteralKind::kUntyped, field->bare});
    } else {
      take_values(setting);
    }
  }

  bool choice_follows(const Field& field) const {
    const auto& names = std::get<Choice>(field.target).names;
    return next_ < arguments_.size() && std::ranges::find(names, arguments_[next_]) != names.end();
  }

  bool value_follows() const { return next_ < arguments_.size() && !is_flag(arguments_[next_]); }

  void take_values(Setting& setting) {
    const std::size_t most = setting.field->is_list() ? arguments_.size() : 1;
    while (setting.values.size() < most && value_follows()) {
      setting.values.push_back({LiteralKind::kUntyped, arguments_[next_++]});
    }
    if (!setting.values.empty()) return;
    lines_.push_back(fmt::format("{} needs a value: {} {}", setting.field->display_name(),
                                 setting.field->display_name(), setting.field->value_name));
    setting.field->given = setting.field->wrong = true;
    settings_.pop_back();
  }

  // Skips the probable values of an unknown flag.
  void skip_values() {
    if (positionals_.empty()) {
      while (value_follows()) ++next_;
    } else if (value_follows()) {
      ++next_;
    }
  }

  void read_positional(const std::string& argument) {
    if (positional_ == positionals_.size()) {
      const std::string_view before = next_ > 1 ? std::string_view(arguments_[next_ - 2]) : "";
      const Field* const flag = before.starts_with("--") ? fields_.find(before.substr(2)) : nullptr;
      lines_.push_back(fmt::format("unexpected argument '{}'; {}", shortened(argument),
                                   flag == nullptr || !flag->is_bool()
                                       ? "flags begin with --"
                                       : fmt::format("{0} is a switch; give it alone, or {0}=false", before)));
      return;
    }
    Field* field = positionals_[positional_];
    if (!field->is_list()) ++positional_;
    // Flags may stand between the values of a list.
    auto setting = std::ranges::find(settings_, field, &Setting::field);
    if (setting == settings_.end()) setting = settings_.insert(setting, {.field = field});
    setting->values.push_back({LiteralKind::kUntyped, argument});
  }

  void report_unknown(std::string_view flag) {
    const auto has_flag = [&](const std::string& name) { return fields_.find(name) != nullptr; };
    if (lines_.size() >= kMostFaultsShown) {  // only counted
      lines_.emplace_back("unknown flag");
      return;
    }
    if (const std::string hint = foreign_flag_hint(flag, has_flag); !hint.empty()) {
      lines_.push_back(fmt::format("unknown flag '{}'; {}", shortened(flag), hint));
      return;
    }
    std::vector<std::string> known = {"--help"};
    for (const Field& field : fields_) {
      if (field.role == FieldRole::kPositional || field.role == FieldRole::kHiddenFlag) continue;
      known.push_back("--" + field.name);
      if (!field.alias.empty()) known.push_back("--" + field.alias);
    }
    const std::string nearest = nearest_name(flag, known);
    lines_.push_back(
        fmt::format("unknown flag '{}'; {}", shortened(flag),
                    nearest.empty() ? "--help lists the flags" : fmt::format("did you mean '{}'?", nearest)));
  }

  FieldList& fields_;
  std::span<const std::string> arguments_;
  FaultLines& lines_;
  std::vector<Field*> positionals_;
  std::vector<Setting> settings_;
  std::size_t next_ = 0, positional_ = 0;
};

}  // namespace

std::vector<Setting> read_command_line(FieldList& fields, std::span<const std::string> arguments, FaultLines& lines) {
  return CommandLineReader(fields, arguments, lines).read();
}

}  // namespace teratron
