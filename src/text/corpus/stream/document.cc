#include "corpus/stream/document.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/json_string.h"
#include "base/utf8.h"
#include "data/text/json_members.h"

namespace teratron {

Document make_document(const RawDocument& raw, DocumentText& text_of) {
  const std::string_view text = text_of.of(raw);
  Document document{.text = raw.is_base64 ? bytes_of_base64(text).value() : std::string(text),
                    .file = raw.file,
                    .line = raw.line,
                    .unit = raw.unit};
  if (raw.line > 0) {
    document.record = raw.bytes;
    while (document.record.ends_with('\r')) document.record.pop_back();
  } else if (!is_utf8(text)) {
    throw_user_error("{}: this is not UTF-8; convert it with iconv, or leave it out", name_of_input(*raw.file));
  }
  return document;
}

std::string json_line_of(const Document& document, std::string_view text_key) {
  if (!document.changed && !document.record.empty()) return document.record;
  std::string line;
  line.reserve(document.record.size() + document.text.size() + 64);
  if (document.record.empty()) {
    line = "{";
    append_json_string(text_key, line);
    line += ": ";
    append_json_string(document.text, line);
    return line + "}";
  }
  const std::string_view record = document.record;
  const std::optional<std::string_view> old = find_member(record, text_key);
  check(old.has_value(), "json_line_of: the record has a text");
  const auto begin = static_cast<std::size_t>(old->data() - record.data());
  line = record.substr(0, begin);
  append_json_string(document.text, line);
  line += record.substr(begin + old->size());
  return line;
}

std::string record_of_piece(std::string record, std::int64_t document) {
  if (!find_member(record, kPieceOf)) record.insert(record.rfind('}'), fmt::format(", \"{}\": {}", kPieceOf, document));
  return record;
}

}  // namespace teratron
