#include "data/text/document_text.h"

#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "data/text/input_files.h"
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

// What is in a JSON object, valid until the next one is read. Throws UserError without the file and line.
struct DocumentText::Parser {
  explicit Parser(const TextKeys& given) : keys(given) {}

  std::string_view text_of(std::string_view line) {
    simdjson::dom::element value;
    // The line has DocumentReader::kPadding readable bytes behind it, so simdjson need not copy it.
    if (const auto error = json.parse(line.data(), line.size(), false).get(value)) {
      // JSON has no limit for numbers and for lists in lists, and simdjson has.
      const bool is_text = error != simdjson::UTF8_ERROR && error != simdjson::STRING_ERROR;
      if (!is_text || !is_json(line)) throw_invalid(error);
      return text_beyond_limits(line);
    }
    simdjson::dom::object object;
    if (value.get(object)) throw_no_object();
    for (const std::string& key : keys.names) {
      simdjson::dom::element member;
      std::string_view text;
      if (object.at_key(key).get(member)) continue;
      if (member.get(text)) throw_no_text(key);
      return checked(text, key);
    }
    throw_no_key(keys_of(object));
  }

  // Passes over the other members without reading their values.
  std::string_view text_beyond_limits(std::string_view line) {
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    if (lazy.iterate(line.data(), line.size(), line.size() + simdjson::SIMDJSON_PADDING).get(document) ||
        document.get_object().get(object)) {
      throw_no_object();
    }
    std::vector<std::optional<std::string_view>> texts(keys.names.size());
    for (auto field : object) {
      std::string_view name;
      if (const auto error = field.unescaped_key().get(name)) throw_invalid(error);
      const auto key = static_cast<std::size_t>(std::ranges::find(keys.names, name) - keys.names.begin());
      if (key == keys.names.size() || texts[key]) continue;
      simdjson::ondemand::value value = field.value();
      if (value.type() != simdjson::ondemand::json_type::string) throw_no_text(keys.names[key]);
      std::string_view text;
      if (const auto error = value.get_string().get(text)) throw_invalid(error);
      texts[key] = text;
    }
    for (std::size_t key = 0; key < texts.size(); ++key) {
      if (texts[key]) return checked(*texts[key], keys.names[key]);
    }
    throw_no_key("others");
  }

  static std::string_view checked(std::string_view text, const std::string& key) {
    if (text.find('\0') == text.npos) return text;
    throw_user_error("\"{}\" holds a NUL (\\u0000), as no text does; remove it", key);
  }
  [[noreturn]] void throw_invalid(simdjson::error_code error) const {
    throw_user_error("this {} is not valid JSON ({}); repair or remove it", unit, simdjson::error_message(error));
  }

  [[noreturn]] void throw_no_object() const {
    throw_user_error("this {0} is not a JSON object; a {0} is to look like {{\"{1}\": \"the document's text\"}}", unit,
                     keys.names[0]);
  }
  [[noreturn]] void throw_no_key(const std::string& there) const {
    throw_user_error("this object has no {} (its keys: {}); {}",
                     fmt::format("\"{}\"", fmt::join(keys.names, "\" or \"")), there, keys.advice);
  }
  [[noreturn]] void throw_no_text(const std::string& key) const {
    throw_user_error("\"{}\" is not a string; {}", key, keys.advice);
  }

  const TextKeys& keys;
  std::string_view unit = "line";  // or "element"
  simdjson::dom::parser json;
  simdjson::ondemand::parser lazy;
};

DocumentText::DocumentText(TextKeys keys) : keys_(std::move(keys)), parser_(std::make_unique<Parser>(keys_)) {}

DocumentText::~DocumentText() = default;

std::string_view DocumentText::of(const RawDocument& document) {
  if (document.line == 0) {
    if (!document.any_bytes) require_utf8(document.bytes, *document.file);
    return document.bytes;
  }
  try {
    parser_->unit = document.in_array ? "element" : "line";
    return parser_->text_of(document.bytes);
  } catch (const UserError& error) {
    throw_user_error("{}: {}", place_of(*document.file, document.line, document.in_array), error.what());
  }
}

}  // namespace teratron
