#include "options/output.h"

#include <fmt/format.h>

#include <algorithm>

#include "console/term_list.h"
#include "console/text_table.h"

namespace teratron {
namespace {

// Value in a usage: "FILE...", "N", "START INCREMENT SAMPLES"; empty for a switch.
std::string value_of(const Field& field) {
  // A value name with spaces names each of several values.
  const bool any_number = field.is_list() && field.value_name.find(' ') == std::string::npos;
  return field.is_bool() ? "" : field.value_name + (any_number ? "..." : "");
}

std::string usage_of(const Field& field) {
  if (field.role == FieldRole::kPositional) return value_of(field);
  std::string usage = field.display_name();
  if (!field.alias.empty()) usage += ", --" + field.alias;
  return usage + (field.is_bool() ? "" : " ") + value_of(field);
}

std::string explanation_of(const Field& field) {
  const std::string value = field.value_text();
  if (field.required) return field.help + " (needed)";
  if (field.role == FieldRole::kPositional || field.is_bool() || value.empty()) return field.help;
  return fmt::format("{} [{}]", field.help, value);
}

}  // namespace

std::string usage_text(const FieldList& fields) {
  std::string needed, positionals;
  for (const Field& field : fields) {
    if (field.required) needed += usage_of(field) + " ";
    if (field.role == FieldRole::kPositional) positionals += " " + usage_of(field);
  }
  const bool has_flags =
      std::ranges::any_of(fields, [](const Field& field) { return field.role != FieldRole::kPositional; });
  if (has_flags) needed += "[--flag value ...]";
  return needed.empty() && !positionals.empty() ? positionals.substr(1) : needed + positionals;
}

std::string help_text(const FieldList& fields, TextStyle style) {
  TermList list(style);
  std::string_view group;
  for (const Field& field : fields) {
    if (field.role == FieldRole::kHiddenFlag) continue;
    if (field.group != group) list.heading(field.group + ":");
    group = field.group;
    list.term(usage_of(field), explanation_of(field));
  }
  return list.text();
}

std::string roff_escaped(std::string_view text) {
  std::string result = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char character : text) {
    if (character == '\\') {
      result += "\\e";
    } else if (character == '-') {
      result += "\\-";
    } else {
      result += character;
    }
  }
  return result;
}

std::string man_text(const FieldList& fields) {
  std::string text;
  std::string_view group = "Options";  // the default, without a heading
  for (const Field& field : fields) {
    if (field.role == FieldRole::kHiddenFlag) continue;
    if (field.group != group) {
      text += fmt::format(".PP\n.I {}\n", roff_escaped(field.group));
      group = field.group;
    }
    text += ".TP\n";
    if (field.role != FieldRole::kPositional) text += fmt::format("\\fB{}\\fR", roff_escaped(field.display_name()));
    if (!field.alias.empty()) text += fmt::format(", \\fB{}\\fR", roff_escaped("--" + field.alias));
    if (!field.is_bool()) {
      text +=
          fmt::format("{}\\fI{}\\fR", field.role == FieldRole::kPositional ? "" : " ", roff_escaped(value_of(field)));
    }
    text += "\n" + roff_escaped(explanation_of(field)) + "\n";
  }
  return text;
}

std::string value_table(const FieldList& fields) {
  TextTable table({Align::kLeft, Align::kLeft, Align::kLeft});
  std::string_view group;
  for (const Field& field : fields) {
    if (field.role == FieldRole::kHiddenFlag && !field.given) continue;
    const std::string value = field.value_text();
    if (value.empty()) continue;
    if (field.group != group) {
      table.heading(field.group);
      group = field.group;
    }
    table.row({field.display_name().substr(field.role == FieldRole::kPositional ? 0 : 2), value, field.origin});
  }
  return table.text();
}

}  // namespace teratron
