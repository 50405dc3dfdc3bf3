#include "options/output.h"

#include <fmt/ranges.h>

namespace teratron {
namespace {

enum class ValueKind { kText, kWords, kFiles, kFolders, kPrefixes };

std::vector<std::string> words_of(const Field& field) {
  const auto* const choice = std::get_if<Choice>(&field.target);
  if (!field.word.first.empty()) return {field.word.first};
  return choice != nullptr && field.known_values.empty() ? choice->names : field.known_values;
}

ValueKind kind_of(const Field& field) {
  if (!words_of(field).empty()) return ValueKind::kWords;
  if (field.value_name == "PREFIX") return ValueKind::kPrefixes;
  const bool is_path = std::holds_alternative<std::filesystem::path*>(field.target) ||
                       std::holds_alternative<std::vector<std::filesystem::path>*>(field.target);
  if (!is_path) return ValueKind::kText;
  return field.value_name == "DIR" ? ValueKind::kFolders : ValueKind::kFiles;
}

std::vector<std::string> flags_of(const Field& field) {
  if (field.role == FieldRole::kPositional || field.role == FieldRole::kHiddenFlag) return {};
  std::vector<std::string> flags = {"--" + field.name};
  if (!field.alias.empty()) flags.push_back("--" + field.alias);
  return flags;
}

// Completion of a field's value, as the tables of bash and fish have it (output.h).
std::string value_completion(const Field& field) {
  const std::string several = field.is_list() ? "*" : "";
  switch (kind_of(field)) {
    case ValueKind::kWords: return fmt::format("words:{}{}", fmt::join(words_of(field), ","), several);
    case ValueKind::kFiles: return "files" + several;
    case ValueKind::kFolders: return "folders" + several;
    case ValueKind::kPrefixes: return "prefixes" + several;
    case ValueKind::kText: break;
  }
  return "text" + several;
}

std::string zsh_action(const Field& field) {
  switch (kind_of(field)) {
    case ValueKind::kWords: return fmt::format("({})", fmt::join(words_of(field), " "));
    case ValueKind::kFiles: return "_files";
    case ValueKind::kFolders: return "_files -/";
    case ValueKind::kPrefixes: return "_teratron_prefixes";
    case ValueKind::kText: break;
  }
  return " ";  // a space: no completion
}

// Puts a backslash before each of `special`.
std::string escape(std::string_view text, std::string_view special) {
  std::string result;
  for (const char character : text) {
    if (special.find(character) != std::string_view::npos) result += '\\';
    result += character;
  }
  return result;
}

}  // namespace

std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char character : text) result += character == '\'' ? std::string("'\\''") : std::string(1, character);
  return result + "'";
}

// Single quotes of fish, in which a backslash stands before a quote and before a backslash.
std::string fish_quoted(std::string_view text) { return "'" + escape(text, "\\'") + "'"; }

std::string bash_completion(const std::string& command, const FieldList& fields) {
  std::string values;
  std::vector<std::string> flags, arguments;
  for (const Field& field : fields) {
    if (field.role == FieldRole::kPositional) arguments.push_back(value_completion(field));
    for (const std::string& flag : flags_of(field)) {
      flags.push_back(flag);
      if (!field.is_bool()) {
        values += fmt::format("_teratron_values[{}]={}\n", shell_quoted(fmt::format("{} {}", command, flag)),
                              shell_quoted(value_completion(field)));
      }
    }
  }
  flags.emplace_back("--help");
  return fmt::format("_teratron_flags[{0}]={1}\n_teratron_arguments[{0}]={2}\n{3}", shell_quoted(command),
                     shell_quoted(fmt::format("{}", fmt::join(flags, " "))),
                     shell_quoted(fmt::format("{}", fmt::join(arguments, " "))), values);
}

std::string zsh_completion(const std::string& command, const FieldList& fields) {
  std::string specifications;
  const auto add = [&](const std::string& specification) {
    specifications += " \\\n        " + shell_quoted(specification);
  };
  for (const Field& field : fields) {
    const std::string value = fmt::format("{}:{}", escape(field.value_name, "\\:"), zsh_action(field));
    const std::string help = escape(field.help, "\\[]");
    if (field.role == FieldRole::kPositional) add((field.is_list() ? "*:" : ":") + value);
    for (const std::string& flag : flags_of(field)) {
      add(field.is_bool() ? fmt::format("{}[{}]", flag, help) : fmt::format("{}=[{}]:{}", flag, help, value));
    }
  }
  add("--help[lists the flags]");
  return fmt::format("    {})\n      _arguments{}\n      ;;\n", shell_quoted(command), specifications);
}

std::string fish_completion(const std::string& command, const FieldList& fields) {
  std::string flags, values, helps, arguments;
  const auto add = [&](const std::string& flag, const std::string& value, std::string_view help) {
    flags += " " + flag;
    values += " " + fish_quoted(value);
    helps += " " + fish_quoted(help);
  };
  for (const Field& field : fields) {
    if (field.role == FieldRole::kPositional) arguments += " " + fish_quoted(value_completion(field));
    for (const std::string& flag : flags_of(field)) {
      add(flag, field.is_bool() ? "" : value_completion(field), field.help);
    }
  }
  add("--help", "", "lists the flags");
  return fmt::format(
      "        case {}\n            set flags{}\n            set values{}\n            set helps{}\n"
      "            set arguments{}\n",
      fish_quoted(command), flags, values, helps, arguments);
}

}  // namespace teratron
