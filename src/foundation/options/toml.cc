// TOML (https://toml.io, version 1.0) in and out of a list of fields.
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/utf8.h"
#include "options/foreign_flags.h"
#include "options/output.h"
#include "options/reading.h"
#include "options/suggestion.h"
#include "options/toml_parsing.h"

namespace teratron {
namespace {

constexpr std::string_view kBytesMark = "bytes:";

std::string with_underscores(std::string text) {
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

std::optional<Literal> literal_of(const toml::node& node) {
  if (const auto* value = node.as_integer()) return Literal{LiteralKind::kInteger, fmt::format("{}", value->get())};
  if (const auto* value = node.as_floating_point())
    return Literal{LiteralKind::kFloat, fmt::format("{}", value->get())};
  if (const auto* value = node.as_boolean()) return Literal{LiteralKind::kBoolean, value->get() ? "true" : "false"};
  if (const auto* value = node.as_string()) return Literal{LiteralKind::kText, from_utf8(value->get())};
  return std::nullopt;
}

// Literals of a value or of an array of values; nullopt for tables, dates and nested arrays.
std::optional<std::vector<Literal>> literals_of(const toml::node& node) {
  std::vector<Literal> literals;
  if (const toml::array* array = node.as_array()) {
    for (const toml::node& element : *array) {
      const auto literal = literal_of(element);
      if (!literal) return std::nullopt;
      literals.push_back(*literal);
    }
    return literals;
  }
  const auto literal = literal_of(node);
  if (!literal) return std::nullopt;
  return std::vector{*literal};
}

Field* find_key(FieldList& fields, std::string_view key) {
  for (Field& field : fields) {
    const bool settable = field.role == FieldRole::kFlag || field.role == FieldRole::kHiddenFlag;
    if (!settable) continue;
    if (with_underscores(field.name) == key) return &field;
    if (!field.alias.empty() && with_underscores(field.alias) == key) return &field;
  }
  return nullptr;
}

std::string unknown_key(FieldList& fields, std::string_view key, std::string_view origin) {
  const auto has_flag = [&](const std::string& name) { return fields.find(name) != nullptr; };
  if (const std::string hint = foreign_flag_hint(key, has_flag); !hint.empty() && key.size() > 1) {
    return fmt::format("unknown key '{}' ({}); {}", shortened(key), origin, hint);
  }
  std::vector<std::string> known;
  for (const Field& field : fields) {
    if (field.role != FieldRole::kFlag) continue;
    known.push_back(with_underscores(field.name));
    if (!field.alias.empty()) known.push_back(with_underscores(field.alias));
  }
  const std::string nearest = nearest_name(with_underscores(std::string(key)), known);
  return fmt::format("unknown key '{}' ({}){}", shortened(key), origin,
                     nearest.empty() ? "; --help lists the flags, which are the keys written with underscores"
                                     : fmt::format("; did you mean '{}'?", nearest));
}

struct TomlText {
  std::string operator()(const std::int64_t* value) const { return fmt::format("{}", *value); }
  std::string operator()(const double* value) const { return toml_number(*value); }
  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const std::string* value) const { return toml_text(*value); }
  std::string operator()(const std::filesystem::path* value) const { return toml_text(value->string()); }
  std::string operator()(const std::vector<std::filesystem::path>* value) const {
    std::string text;
    for (const std::filesystem::path& path : *value) text += (text.empty() ? "" : ", ") + toml_text(path.string());
    return "[" + text + "]";
  }
  std::string operator()(const std::vector<std::int64_t>* value) const {
    return fmt::format("[{}]", fmt::join(*value, ", "));
  }
  std::string operator()(const std::vector<double>* value) const {
    std::string text;
    for (const double number : *value) text += (text.empty() ? "" : ", ") + toml_number(number);
    return "[" + text + "]";
  }
  std::string operator()(const std::vector<std::string>* value) const {
    std::string text;
    for (const std::string& word : *value) text += (text.empty() ? "" : ", ") + toml_text(word);
    return "[" + text + "]";
  }
  std::string operator()(const Choice& choice) const { return toml_text(choice.names[choice.get()]); }
};

}  // namespace

std::string as_utf8(std::string_view text) {
  if (is_utf8(text) && !text.starts_with(kBytesMark)) return std::string(text);
  std::string out(kBytesMark);
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    const bool is_kept = step.status == Utf8Status::kValid && text.front() != '%';
    for (const char byte : text.substr(0, step.length)) {
      out += is_kept ? std::string(1, byte) : fmt::format("%{:02X}", static_cast<unsigned char>(byte));
    }
    text.remove_prefix(step.length);
  }
  return out;
}

std::string from_utf8(std::string_view text) {
  if (!text.starts_with(kBytesMark)) return std::string(text);
  text.remove_prefix(kBytesMark.size());
  std::string out;
  while (!text.empty()) {
    unsigned char byte = 0;
    const std::string_view digits = text.substr(1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    const bool is_byte =
        text.front() == '%' && digits.size() == 2 && error == std::errc() && end == digits.data() + digits.size();
    out += is_byte ? static_cast<char>(byte) : text.front();
    text.remove_prefix(is_byte ? 3 : 1);
  }
  return out;
}

// Replaces toml++'s own formatting, which writes three single quotes in a row such that it cannot read them back.
std::string toml_text(const std::string& text) {
  std::string out = "\"";
  for (const char byte : as_utf8(text)) {
    const auto code = static_cast<unsigned char>(byte);
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += byte;
    } else if (code < 0x20 || code == 0x7F) {
      out += fmt::format("\\u{:04X}", code);
    } else {
      out += byte;
    }
  }
  return out + "\"";
}

std::string toml_number(double number) {
  const std::string text = fmt::format("{}", number);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

const std::string& ConfigFiles::text(const std::filesystem::path& path) {
  if (names_standard_input(path) && !is_standard_stream(path)) return text("-");
  auto found = contents_.find(path);
  if (found == contents_.end()) {
    Content content;
    try {
      content.text = read_file(path);
    } catch (const UserError& error) {
      content.fault = error.what();
    }
    found = contents_.emplace(path, std::move(content)).first;
  }
  if (!found->second.fault.empty()) throw UserError(found->second.fault);
  return found->second.text;
}

std::vector<Setting> read_config(FieldList& fields, std::string_view text, const std::string& name, FaultLines& lines) {
  std::vector<Setting> settings;
  std::map<const Field*, std::string_view> keys;  // key by which each field was set
  const toml::table table = parse_toml(text, name);
  for (const auto& [key, node] : table) {
    const std::string origin = fmt::format("{}:{}", name, key.source().begin.line);
    Field* field = find_key(fields, key.str());
    auto literals = literals_of(node);
    if (field == nullptr && node.is_table()) {
      lines.push_back(
          fmt::format("'{}' is a table ({}); settings are written without tables", shortened(key.str()), origin));
    } else if (field == nullptr) {
      // Faults that are only counted need no search for the nearest name.
      lines.push_back(lines.size() < kMostFaultsShown ? unknown_key(fields, key.str(), origin) : "unknown key");
    } else if (!literals) {
      field->given = field->wrong = true;
      lines.push_back(fmt::format("{} has no value that a setting can have ({})", key.str(), origin));
    } else if (const auto [other, is_first] = keys.emplace(field, key.str()); !is_first) {
      lines.push_back(fmt::format("'{}' and '{}' are two names of one setting ({}); keep one of them", other->second,
                                  key.str(), origin));
    } else {
      settings.push_back({field, *std::move(literals), node.is_array(), origin});
    }
  }
  return settings;
}

std::string to_toml(const FieldList& fields, const std::function<bool(const Field&)>& leaves_out) {
  std::string text;
  std::string_view group;
  for (const Field& field : fields) {
    if (field.role != FieldRole::kFlag && field.role != FieldRole::kHiddenFlag) continue;
    if (leaves_out && leaves_out(field)) continue;
    if (field.group != group) text += fmt::format("{}# {}\n", text.empty() ? "" : "\n", group = field.group);
    text += fmt::format("{} = {}\n", with_underscores(field.name),
                        field.is_word() ? toml_text(field.word.first) : std::visit(TomlText{}, field.target));
  }
  return text;
}

}  // namespace teratron
