#include "corpus/stream/document.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/files/file.h"
#include "base/utf8.h"

namespace teratron {
namespace {

// Reads along an object of valid JSON.
class ObjectScanner {
 public:
  explicit ObjectScanner(std::string_view json) : json_(json) {}

  bool skip(char expected) {
    skip_space();
    if (at_ == json_.size() || json_[at_] != expected) return false;
    ++at_;
    return true;
  }
  std::string_view key() {  // with its quotes
    skip_space();
    const std::size_t begin = at_;
    skip_string();
    return json_.substr(begin, at_ - begin);
  }
  std::string_view value() {
    skip_space();
    const std::size_t begin = at_;
    for (int depth = 0; at_ < json_.size();) {
      const char c = json_[at_];
      if (c == '"') {
        skip_string();
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}')) break;
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at_;
    }
    std::string_view value = json_.substr(begin, at_ - begin);
    return value.substr(0, value.find_last_not_of(kSpaces) + 1);
  }

 private:
  static constexpr std::string_view kSpaces = " \t\r\n";
  void skip_space() { at_ = std::min(json_.find_first_not_of(kSpaces, at_), json_.size()); }
  void skip_string() {
    for (++at_; at_ < json_.size() && json_[at_] != '"'; ++at_) at_ += json_[at_] == '\\' ? 1 : 0;
    at_ = std::min(at_ + 1, json_.size());
  }

  std::string_view json_;
  std::size_t at_ = 0;
};

char32_t hexadecimal(std::string_view digits) {
  std::uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

// What a valid JSON string stands for; `quoted` has its quotes.
std::string without_escapes(std::string_view quoted) {
  std::string_view rest = quoted.substr(1, quoted.size() - 2);
  std::string text;
  text.reserve(rest.size());
  while (true) {
    const std::size_t escape = rest.find('\\');
    text += rest.substr(0, escape);
    if (escape == rest.npos) return text;
    const char kind = rest[escape + 1];
    rest.remove_prefix(escape + 2);
    if (kind != 'u') {
      constexpr std::string_view kLetters = "bfnrt", kMeanings = "\b\f\n\r\t";
      const std::size_t known = kLetters.find(kind);
      text.push_back(known == kLetters.npos ? kind : kMeanings[known]);
      continue;
    }
    char32_t code = hexadecimal(rest.substr(0, 4));
    rest.remove_prefix(4);
    if (code >= 0xD800 && code < 0xDC00 && rest.size() >= 6) {  // with the second half of a pair
      code = 0x10000 + ((code - 0xD800) << 10) + (hexadecimal(rest.substr(2, 4)) - 0xDC00);
      rest.remove_prefix(6);
    }
    append_utf8(code, text);
  }
}

}  // namespace

std::string origin_of(const Document& document) { return place_of(*document.file, document.line); }

Document make_document(const RawDocument& raw, DocumentText& text_of) {
  const std::string_view text = text_of.of(raw);
  Document document{.text = std::string(text), .file = raw.file, .line = raw.line};
  if (raw.line > 0) {
    document.record = raw.bytes;
    while (document.record.ends_with('\r')) document.record.pop_back();
  } else if (!is_utf8(text)) {
    throw_user_error("{}: this is not UTF-8; convert it with iconv, or leave it out", origin_of(document));
  }
  return document;
}

void visit_members(std::string_view object,
                   const std::function<bool(const std::string& key, std::string_view value)>& visit) {
  ObjectScanner scanner(object);
  scanner.skip('{');
  while (!scanner.skip('}')) {
    const std::string_view name = scanner.key();
    if (!scanner.skip(':')) return;
    const std::string_view value = scanner.value();
    if (!visit(without_escapes(name), value)) return;
    scanner.skip(',');
  }
}

std::optional<std::string_view> find_member(std::string_view object, std::string_view key) {
  std::optional<std::string_view> found;
  visit_members(object, [&](const std::string& name, std::string_view value) {
    if (name == key) found = value;
    return !found;
  });
  return found;
}

std::optional<std::string> string_member(std::string_view object, std::string_view key) {
  const std::optional<std::string_view> value = find_member(object, key);
  if (!value || !value->starts_with('"')) return std::nullopt;
  return without_escapes(*value);
}

void append_json_string(std::string_view text, std::string& out) {
  out.push_back('"');
  const auto is_special = [](char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20; };
  for (std::size_t begin = 0; begin < text.size();) {
    const auto rest = text.substr(begin);
    const auto length = static_cast<std::size_t>(std::ranges::find_if(rest, is_special) - rest.begin());
    out += rest.substr(0, length);
    begin += length + 1;
    if (length == rest.size()) break;
    switch (const char c = rest[length]) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default: out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    }
  }
  out.push_back('"');
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

}  // namespace teratron
