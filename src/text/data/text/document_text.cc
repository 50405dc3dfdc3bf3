#include "data/text/document_text.h"

#include <simdjson.h>

#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "data/text/input_files.h"
#include "data/text/json_members.h"
#include "data/text/json_scanner.h"

namespace teratron {
namespace {

static_assert(DocumentReader::kPadding >= simdjson::SIMDJSON_PADDING);

// The first eight keys of an object, for messages.
std::string keys_of(const simdjson::dom::object& object) {
  std::string keys;
  int listed = 0;
  for (const auto& field : object) {
    if (++listed > 8) return keys + ", ...";
    keys += fmt::format("{}\"{}\"", keys.empty() ? "" : ", ", field.key);
  }
  return keys.empty() ? "none" : keys;
}

}  // namespace

// Reads the text in a JSON object; valid until the next one is read. Throws UserError without the file and line.
struct DocumentText::Parser {
  explicit Parser(const TextKeys& given) : keys(given) {}

  std::string_view text_of(std::string_view line) {
    simdjson::dom::element value;
    // The line has DocumentReader::kPadding readable bytes after it, so simdjson need not copy it.
    if (json.parse(line.data(), line.size(), false).get(value)) {
      if (!simdjson::validate_utf8(line.data(), line.size())) throw_no_utf8(line);
      // JSON has no limit for numbers and nesting, and may have half a surrogate pair; simdjson refuses them.
      if (!is_json(line))
        throw_user_error("this {} is not valid JSON: {}; repair or remove it", unit, json_fault(line));
      return text_beyond_limits(line);
    }
    simdjson::dom::object object;
    if (value.get(object)) throw_no_object();
    for (const std::string& key : keys.names) {
      std::optional<simdjson::dom::element> member;
      for (const auto& field : object) {
        if (field.key == key) member = field.value;  // the last one, as other programs do
      }
      if (!member) continue;
      std::string_view text;
      if (member->get(text)) throw_no_text(key, kind_of(simdjson::minify(*member)));
      return checked(text, key);
    }
    throw_no_key(keys_of(object));
  }

  // Skips the other members without reading their values.
  std::string_view text_beyond_limits(std::string_view line) {
    if (!without_leading_space(line).starts_with('{')) throw_no_object();
    for (const std::string& key : keys.names) {
      const std::optional<std::string_view> value = find_member(line, key);
      if (!value) continue;
      if (!value->starts_with('"')) throw_no_text(key, kind_of(*value));
      own_text = json_string_value(*value);
      return checked(own_text, key);
    }
    throw_no_key("others");
  }

  // The type of a value that is no string.
  static std::string_view kind_of(std::string_view value) {
    switch (value.front()) {
      case '{': return "an object";
      case '[': return "a list";
      case 'n': return "null";
      case 't': return "true";
      case 'f': return "false";
      default: return "a number";
    }
  }

  std::string_view checked(std::string_view text, const std::string& key) const {
    if (keys.may_hold_nul || text.find('\0') == text.npos) return text;
    throw_user_error("\"{}\" holds a NUL (\\u0000), as no text does; remove it", key);
  }
  [[noreturn]] void throw_no_utf8(std::string_view line) const {
    throw_user_error("this {} is not UTF-8: {}; {}", unit, utf8_fault(line),
                     unit == name_of(DocumentUnit::kRow)
                         ? "write the table's texts again in UTF-8"
                         : "convert the file, for example with iconv -f WINDOWS-1252 -t UTF-8");
  }
  [[noreturn]] void throw_no_object() const {
    throw_user_error("this {} is not a JSON object; it is to look like {{\"{}\": \"the document's text\"}}", unit,
                     keys.names[0]);
  }
  [[noreturn]] void throw_no_key(const std::string& there) const {
    throw_user_error("this object has no {} (its keys: {}); {}",
                     fmt::format("\"{}\"", fmt::join(keys.names, "\" or \"")), there, keys.advice);
  }
  [[noreturn]] void throw_no_text(const std::string& key, std::string_view kind) const {
    throw_user_error("\"{}\" is {}, not a string; {}", key, kind, keys.advice);
  }

  const TextKeys& keys;
  std::string_view unit = "line";  // or "element", "row"
  simdjson::dom::parser json;
  std::string own_text;  // of an object that simdjson refuses
};

DocumentText::DocumentText(TextKeys keys, std::string_view format_flag)
    : keys_(std::move(keys)), format_flag_(format_flag), parser_(std::make_unique<Parser>(keys_)) {}

DocumentText::~DocumentText() = default;

std::string_view DocumentText::of(const RawDocument& document) {
  if (document.line == 0) {
    if (!document.any_bytes) require_utf8(document.bytes, *document.file, format_flag_);
    return document.bytes;
  }
  try {
    parser_->unit = name_of(document.unit);
    return parser_->text_of(document.bytes);
  } catch (const UserError& error) {
    throw_user_error("{}: {}", place_of(*document.file, document.line, document.unit), error.what());
  }
}

}  // namespace teratron
