#include "options/reading.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/utf8.h"

namespace teratron {
namespace {

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Stores one literal in a field. Returns the text of what is needed where it does not fit, else "".
class Store {
 public:
  Store(const Literal& literal, const std::vector<std::string>& known_values)
      : literal_(literal), known_values_(known_values) {}

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
    if (!is_possible_path()) return kNoPath;
    *target = literal_.text;
    return "";
  }
  std::string operator()(std::vector<std::filesystem::path>* target) const {
    if (!is(LiteralKind::kText)) return "paths in quotes are needed";
    if (!is_possible_path()) return kNoPath;
    target->push_back(literal_.text);
    return "";
  }
  std::string operator()(std::vector<std::int64_t>* target) const {
    return is(LiteralKind::kInteger) && add_numbers(*target) ? "" : "whole numbers are needed";
  }
  std::string operator()(std::vector<double>* target) const {
    return (is(LiteralKind::kFloat) || is(LiteralKind::kInteger)) && add_numbers(*target) ? "" : "numbers are needed";
  }
  // Words may be numbers, for which a file needs no quotes.
  std::string operator()(std::vector<std::string>* target) const {
    if (literal_.kind == LiteralKind::kBoolean) return "words in quotes or numbers are needed";
    target->push_back(literal_.text);
    return "";
  }
  std::string operator()(const Choice& choice) const {
    for (std::size_t i = 0; i < choice.names.size(); ++i) {
      if (!is(LiteralKind::kText) || choice.names[i] != literal_.text) continue;
      choice.set(i);
      return "";
    }
    return fmt::format("there are: {}", fmt::join(known_values_.empty() ? choice.names : known_values_, ", "));
  }

 private:
  // Adds all numbers of one word: --rampup-batch-size="32 32 1000".
  template <class Number>
  bool add_numbers(std::vector<Number>& numbers) const {
    const std::string_view text = literal_.text;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(' ', begin), text.size());
      const auto number = parse_number<Number>(text.substr(begin, end - begin));
      if (!number || !std::isfinite(static_cast<double>(*number))) return false;
      numbers.push_back(*number);
      begin = end + 1;
    }
    return true;
  }

  static constexpr const char* kNoPath = "a path has at most 4095 bytes, and none of them is zero";
  bool is_possible_path() const {
    return literal_.text.size() < PATH_MAX && literal_.text.find('\0') == std::string::npos;
  }
  bool is(LiteralKind kind) const { return literal_.kind == LiteralKind::kUntyped || literal_.kind == kind; }

  const Literal& literal_;
  const std::vector<std::string>& known_values_;
};

std::string written(const Setting& setting) {
  std::vector<std::string_view> texts;
  for (const Literal& literal : setting.values) texts.push_back(literal.text);
  return setting.is_array ? fmt::format("[{}]", shortened(fmt::format("{}", fmt::join(texts, ", "))))
                          : fmt::format("'{}'", shortened(fmt::format("{}", fmt::join(texts, " "))));
}

std::string store(const Setting& setting) {
  Field& field = *setting.field;
  if (auto* const* paths = std::get_if<std::vector<std::filesystem::path>*>(&field.target)) {
    (*paths)->clear();
  } else if (auto* const* numbers = std::get_if<std::vector<std::int64_t>*>(&field.target)) {
    (*numbers)->clear();
  } else if (auto* const* others = std::get_if<std::vector<double>*>(&field.target)) {
    (*others)->clear();
  } else if (auto* const* words = std::get_if<std::vector<std::string>*>(&field.target)) {
    if (!field.repeats) (*words)->clear();
  } else if (setting.is_array) {
    return "one value is needed";
  }
  for (const Literal& literal : setting.values) {
    if (!field.word.first.empty() && literal.text == field.word.first) {
      *std::get<double*>(field.target) = field.word.second;
      continue;
    }
    std::string needed = std::visit(Store(literal, field.known_values), field.target);
    if (!needed.empty() && !field.word.first.empty()) needed += fmt::format(", or {}", field.word.first);
    if (!needed.empty()) return needed;
  }
  return "";
}

void apply(const Setting& setting, FaultLines& lines) {
  Field& field = *setting.field;
  field.given = true;
  field.wrong = true;
  field.origin = setting.origin;
  const std::string where = setting.origin.empty() ? "" : fmt::format(" ({})", setting.origin);
  const std::string needed = store(setting);
  if (!needed.empty()) {
    lines.push_back(fmt::format("{} is {}; {}{}", field.display_name(), written(setting), needed, where));
    return;
  }
  try {
    if (field.when_set) field.when_set();
    field.wrong = false;
  } catch (const UserError& error) {
    lines.push_back(error.what() + where);
  }
}

std::vector<Setting> read_config_file(FieldList& fields, const std::filesystem::path& file, ConfigFiles& files,
                                      FaultLines& lines) {
  std::vector<Setting> settings;
  try {
    settings = read_config(fields, files.text(file), file.string(), lines);
    // A file may have no settings; the writer of a pipe without settings has failed.
    if (settings.empty() && lines.empty() && is_stream(file)) {
      lines.push_back(
          fmt::format("--config {}: no setting came through it; look at the command that writes it", file.string()));
    }
  } catch (const UserError& error) {
    lines.push_back(error.what());
  }
  return settings;
}

bool is_of_preset(const Setting& setting) { return setting.field->is_preset; }

// Moves presets of the command line, the last of `sources`, among the files before it: after the last file with a
// preset, whose further values they replace, and before the files that refine them. Leaves out presets that stand
// already, by an earlier source or by the caller, so that what refines them stays.
void place_presets(std::vector<std::vector<Setting>>& sources) {
  std::vector<Setting>& command_line = sources.back();
  std::vector<Setting> presets;
  std::ranges::copy_if(command_line, std::back_inserter(presets), is_of_preset);
  std::erase_if(command_line, is_of_preset);
  std::size_t place = 0;
  for (std::size_t i = 0; i + 1 < sources.size(); ++i) {
    if (std::ranges::any_of(sources[i], is_of_preset)) place = i + 1;
  }
  sources.insert(sources.begin() + static_cast<std::ptrdiff_t>(place), std::move(presets));
  std::map<const Field*, std::string> standing;  // names of presets
  for (std::vector<Setting>& source : sources) {
    std::erase_if(source, [&](const Setting& setting) {
      const Field& field = *setting.field;
      if (!field.is_preset || setting.values.empty()) return false;
      const std::string& text = setting.values.back().text;
      if (field.given) standing.emplace(&field, field.value_text());
      const auto [at, is_first] = standing.try_emplace(&field, text);
      return !is_first && std::exchange(at->second, text) == text;
    });
  }
}

}  // namespace

std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 100;
  if (text.size() <= kMost) return std::string(text);
  std::size_t end = kMost;  // between characters of UTF-8
  while (end > kMost - 4 && continues_character(text[end])) --end;
  return fmt::format("{}.. ({} bytes)", text.substr(0, end), text.size());
}

void apply_settings(FieldList& fields, std::span<const Setting> settings, FaultLines& lines) {
  for (const Field& field : fields) {
    bool is_first = true;
    for (const Setting& setting : settings) {
      if (setting.field != &field) continue;
      // Values of the command line replace those of a file.
      if (field.repeats && is_first) std::get<std::vector<std::string>*>(field.target)->clear();
      is_first = false;
      apply(setting, lines);
    }
  }
}

FaultLines read_fields(FieldList& fields, std::span<const std::string> arguments) {
  ConfigFiles files;
  return read_fields(fields, arguments, files);
}

FaultLines read_fields(FieldList& fields, std::span<const std::string> arguments, ConfigFiles& files) {
  FaultLines lines;
  std::vector<Setting> given = read_command_line(fields, arguments, lines);
  std::vector<std::vector<Setting>> sources;
  for (const Setting& setting : given) {
    if (setting.field->role != FieldRole::kConfigFile) continue;
    sources.push_back(read_config_file(fields, setting.values.back().text, files, lines));
  }
  sources.push_back(std::move(given));
  place_presets(sources);
  for (const std::vector<Setting>& source : sources) apply_settings(fields, source, lines);
  for (const Field& field : fields) {
    if (field.given || !(field.required || field.role == FieldRole::kPositional)) continue;
    lines.push_back(field.role == FieldRole::kPositional
                        ? fmt::format("{} is missing: {}", field.value_name, field.help)
                        : fmt::format("{} {} is missing: {}", field.display_name(), field.value_name, field.help));
  }
  return lines;
}

void add_value_faults(const FieldList& fields, const Faults& faults, FaultLines& lines) {
  for (const Fault& fault : faults) {
    bool already_reported = false;
    std::vector<std::string> origins;
    for (const Field& field : fields) {
      if (field.role == FieldRole::kPositional || std::ranges::count(fault.flags, field.name) == 0) continue;
      already_reported = already_reported || field.wrong;
      if (!field.origin.empty()) origins.push_back(fmt::format("{} from {}", field.display_name(), field.origin));
    }
    if (already_reported) continue;
    lines.push_back(origins.empty() ? fault.text : fmt::format("{} ({})", fault.text, fmt::join(origins, ", ")));
  }
}

void throw_if_any(const FaultLines& lines) {
  if (lines.empty()) return;
  if (lines.size() == 1) throw UserError(printable(lines.front()));
  const std::size_t shown = std::min(lines.size(), kMostFaultsShown);
  const std::string others = shown < lines.size() ? fmt::format("\n  .. and {} more", lines.size() - shown) : "";
  throw UserError(printable(
      fmt::format("{} faults:\n  {}{}", lines.size(), fmt::join(std::span(lines).first(shown), "\n  "), others)));
}

}  // namespace teratron
