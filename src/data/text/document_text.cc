#include "data/text/document_text.h"

#include <simdjson.h>

#include <utility>

#include "base/error.h"
#include "base/files/file.h"

namespace teratron {
namespace {

static_assert(DocumentReader::kPadding >= simdjson::SIMDJSON_PADDING);

std::string keys_of(const simdjson::dom::object& object) {
  std::string keys;
  int listed = 0;
  for (const auto& field : object) {
    if (++listed > 8) return keys + ", ...";
    keys += fmt::format("{}\"{}\"", keys.empty() ? "" : ", ", field.key);
  }
  return keys.empty() ? "none" : keys;
}

// The text of a .jsonl line, valid until the parser is used again; throws UserError without the file and line.
std::string_view text_of_line(std::string_view line, const std::string& key, simdjson::dom::parser& parser) {
  simdjson::dom::element value;
  // The line has DocumentReader::kPadding readable bytes behind it, so simdjson need not copy it.
  if (const auto error = parser.parse(line.data(), line.size(), false).get(value)) {
    throw_user_error("this line is not valid JSON ({}); repair or remove it", simdjson::error_message(error));
  }
  simdjson::dom::object object;
  if (value.get(object)) {
    throw_user_error("this line is not a JSON object; a line is to look like {{\"{}\": \"the document's text\"}}", key);
  }
  simdjson::dom::element member;
  if (object.at_key(key).get(member)) {
    throw_user_error("this object has no \"{}\" (its keys: {}); name the key of the text with --json-key", key,
                     keys_of(object));
  }
  std::string_view text;
  if (member.get(text)) {
    throw_user_error("\"{}\" is not a string; name the key of the text with --json-key", key);
  }
  if (text.find('\0') != text.npos) throw_user_error("\"{}\" holds a NUL (\\u0000), as no text does; remove it", key);
  return text;
}

}  // namespace

struct DocumentText::Parser {
  simdjson::dom::parser json;
};

DocumentText::DocumentText(std::string key) : key_(std::move(key)), parser_(std::make_unique<Parser>()) {}

DocumentText::~DocumentText() = default;

std::string_view DocumentText::of(const RawDocument& document) {
  if (document.line == 0) return document.bytes;
  try {
    return text_of_line(document.bytes, key_, parser_->json);
  } catch (const UserError& error) {
    const bool has_name = !is_standard_stream(*document.file);
    throw_user_error("{}:{}: {}", has_name ? document.file->string() : "standard input", document.line, error.what());
  }
}

}  // namespace teratron
