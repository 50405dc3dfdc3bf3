#include "options/reading.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "options/suggestion.h"

namespace teratron {
namespace {

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Stores one literal in a field; returns what was needed instead where it does not fit, else nothing.
class Store {
 public:
  explicit Store(const Literal& literal) : literal_(literal) {}

  std::string operator()(std::int64_t* target) const {
    const auto number = parse_number<std::int64_t>(literal_.text);
    if (!number || !is(LiteralKind::kInteger)) return "a whole number is needed";
    *target = *number;
    return "";
  }
  std::string operator()(double* target) const {
    const auto number = parse_number<double>(literal_.text);
    if (!number || !std::isfinite(*number) || !(is(LiteralKind::kFloat) || is(LiteralKind::kInteger))) {
      return "a number is needed";
    }
    *target = *number;
    return "";
  }
  std::string operator()(bool* target) const {
    if (!is(LiteralKind::kBoolean) || (literal_.text != "true" && literal_.text != "false")) {
      return "true or false is needed";
    }
    *target = literal_.text == "true";
    return "";
  }
  std::string operator()(std::string* target) const {
    if (!is(LiteralKind::kText)) return "text in quotes is needed";
    *target = literal_.text;
    return "";
  }
  std::string operator()(std::filesystem::path* target) const {
    if (!is(LiteralKind::kText)) return "a path in quotes is needed";
    *target = literal_.text;
    return "";
  }
  std::string operator()(std::vector<std::filesystem::path>* target) const {
    if (!is(LiteralKind::kText)) return "paths in quotes are needed";
    target->push_back(literal_.text);
    return "";
  }
  // A command line may hold all the numbers in one word: --rampup-batch-size="32 32 1000".
  std::string operator()(std::vector<std::int64_t>* target) const {
    if (!is(LiteralKind::kInteger)) return "whole numbers are needed";
    const std::string_view text = literal_.text;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(' ', begin), text.size());
      const auto number = parse_number<std::int64_t>(text.substr(begin, end - begin));
      if (!number) return "whole numbers are needed";
      target->push_back(*number);
      begin = end + 1;
    }
    return "";
  }
  std::string operator()(const Choice& choice) const {
    for (std::size_t i = 0; i < choice.names.size(); ++i) {
      if (!is(LiteralKind::kText) || choice.names[i] != literal_.text) continue;
      choice.set(i);
      return "";
    }
    return fmt::format("there are: {}", fmt::join(choice.names, ", "));
  }

 private:
  bool is(LiteralKind kind) const { return literal_.kind == LiteralKind::kUntyped || literal_.kind == kind; }

  const Literal& literal_;
};

std::string written(const Setting& setting) {
  std::vector<std::string_view> texts;
  for (const Literal& literal : setting.values) texts.push_back(literal.text);
  return setting.is_array ? fmt::format("[{}]", fmt::join(texts, ", ")) : fmt::format("'{}'", fmt::join(texts, " "));
}

std::string store(const Setting& setting) {
  Field& field = *setting.field;
  if (auto* const* paths = std::get_if<std::vector<std::filesystem::path>*>(&field.target)) {
    (*paths)->clear();
  } else if (auto* const* numbers = std::get_if<std::vector<std::int64_t>*>(&field.target)) {
    (*numbers)->clear();
  } else if (setting.is_array) {
    return "one value is needed";
  }
  for (const Literal& literal : setting.values) {
    std::string needed = std::visit(Store(literal), field.target);
    if (!needed.empty()) return needed;
  }
  return "";
}

void apply(const Setting& setting, Faults& faults) {
  Field& field = *setting.field;
  field.given = true;
  field.wrong = true;
  field.origin = setting.origin;
  const std::string where = setting.origin.empty() ? "" : fmt::format(" ({})", setting.origin);
  const std::string needed = store(setting);
  if (!needed.empty()) {
    faults.push_back(fmt::format("{} is {}; {}{}", field.display_name(), written(setting), needed, where));
    return;
  }
  try {
    if (field.when_set) field.when_set();
    field.wrong = false;
  } catch (const UserError& error) {
    faults.push_back(error.what() + where);
  }
}

// Whether the text names this flag, and not only one that begins like it.
bool names_flag(std::string_view text, std::string_view flag) {
  for (std::size_t at = text.find(flag); at != std::string_view::npos; at = text.find(flag, at + 1)) {
    const std::size_t end = at + flag.size();
    if (end == text.size() || !(std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '-')) return true;
  }
  return false;
}

}  // namespace

void apply_settings(FieldList& fields, std::span<const Setting> settings, Faults& faults) {
  for (const Field& field : fields) {
    for (const Setting& setting : settings) {
      if (setting.field == &field) apply(setting, faults);
    }
  }
}

Faults read_fields(FieldList& fields, std::span<const std::string> arguments) {
  Faults faults;
  const std::vector<Setting> given = read_command_line(fields, arguments, faults);
  for (const Setting& setting : given) {
    if (setting.field->role != FieldRole::kConfigFile) continue;
    apply_settings(fields, read_config_file(fields, setting.values.back().text, faults), faults);
  }
  apply_settings(fields, given, faults);
  for (const Field& field : fields) {
    if (field.given || !(field.required || field.role == FieldRole::kPositional)) continue;
    faults.push_back(field.role == FieldRole::kPositional
                         ? fmt::format("{} is missing: {}", field.value_name, field.help)
                         : fmt::format("{} {} is missing: {}", field.display_name(), field.value_name, field.help));
  }
  return faults;
}

void add_value_faults(const FieldList& fields, std::span<const std::string> value_faults, Faults& faults) {
  for (const std::string& fault : value_faults) {
    bool already_reported = false;
    std::vector<std::string> origins;
    for (const Field& field : fields) {
      if (field.role == FieldRole::kPositional || !names_flag(fault, field.display_name())) continue;
      already_reported = already_reported || field.wrong;
      if (!field.origin.empty()) origins.push_back(fmt::format("{} from {}", field.display_name(), field.origin));
    }
    if (already_reported) continue;
    faults.push_back(origins.empty() ? fault : fmt::format("{} ({})", fault, fmt::join(origins, ", ")));
  }
}

void throw_if_any(const Faults& faults) {
  if (faults.empty()) return;
  if (faults.size() == 1) throw UserError(faults.front());
  throw_user_error("{} faults:\n  {}", faults.size(), fmt::join(faults, "\n  "));
}

}  // namespace teratron
