#include "data/text/json_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "data/text/json_scanner.h"

namespace teratron {
namespace {

// Reads the members of an object of valid JSON.
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

std::uint32_t hexadecimal(std::string_view digits) {
  std::uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

bool is_high_surrogate(std::uint32_t code) { return code >= 0xD800 && code < 0xDC00; }
bool is_low_surrogate(std::uint32_t code) { return code >= 0xDC00 && code < 0xE000; }

// Takes the digits after "\\u" from `rest`, and the second half of a pair after them.
char32_t take_unicode_escape(std::string_view& rest) {
  const std::uint32_t code = hexadecimal(rest.substr(0, 4));
  rest.remove_prefix(4);
  if (is_high_surrogate(code) && rest.size() >= 6 && rest.starts_with("\\u")) {
    const std::uint32_t second = hexadecimal(rest.substr(2, 4));
    if (is_low_surrogate(second)) {
      rest.remove_prefix(6);
      return 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
    }
  }
  return is_high_surrogate(code) || is_low_surrogate(code) ? 0xFFFD : code;
}

// The fault at `at`, where `text` stops being JSON.
std::string fault_at(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at), before = text.substr(0, at);
  const std::size_t last = before.find_last_not_of(" \t\r\n");
  const char previous = last == before.npos ? '\0' : before[last];
  if (rest.starts_with("NaN") || rest.starts_with("Infinity") || rest.starts_with("nan") || rest.starts_with("inf")) {
    return fmt::format("{} is no number of JSON, null is a value", rest.substr(0, rest.find_first_of(" ,]}\t\r\n")));
  }
  if (previous == '\\') return fmt::format("\\{} is no escape; a backslash is \\\\", rest.substr(0, 1));
  if (previous == ',' && (rest[0] == '}' || rest[0] == ']')) return fmt::format("a comma comes before {}", rest[0]);
  if (rest[0] == '\'') return "strings stand in \", not in '";
  if (static_cast<unsigned char>(rest[0]) < 0x20) return "a control character in a string needs an escape";
  const std::size_t length = std::max<std::size_t>(1, decode_utf8(rest).length);
  return fmt::format("'{}' cannot stand there", rest.substr(0, length));
}

}  // namespace

void visit_members(std::string_view object,
                   const std::function<bool(const std::string& key, std::string_view value)>& visit) {
  ObjectScanner scanner(object);
  scanner.skip('{');
  while (!scanner.skip('}')) {
    const std::string_view name = scanner.key();
    if (!scanner.skip(':')) return;
    const std::string_view value = scanner.value();
    if (!visit(json_string_value(name), value)) return;
    scanner.skip(',');
  }
}

std::optional<std::string_view> find_member(std::string_view object, std::string_view key) {
  std::optional<std::string_view> found;
  visit_members(object, [&](const std::string& name, std::string_view value) {
    if (name == key) found = value;
    return true;
  });
  return found;
}

std::optional<std::string> string_member(std::string_view object, std::string_view key) {
  const std::optional<std::string_view> value = find_member(object, key);
  if (!value || !value->starts_with('"')) return std::nullopt;
  return json_string_value(*value);
}

std::string json_string_value(std::string_view quoted) {
  std::string_view rest = quoted.substr(1, quoted.size() - 2);
  std::string text;
  text.reserve(rest.size());
  while (true) {
    const std::size_t escape = rest.find('\\');
    text += rest.substr(0, escape);
    if (escape == rest.npos) return text;
    const char kind = rest[escape + 1];
    rest.remove_prefix(escape + 2);
    if (kind == 'u') {
      append_utf8(take_unicode_escape(rest), text);
      continue;
    }
    constexpr std::string_view kLetters = "bfnrt", kMeanings = "\b\f\n\r\t";
    const std::size_t known = kLetters.find(kind);
    text.push_back(known == kLetters.npos ? kind : kMeanings[known]);
  }
}

std::string json_fault(std::string_view text) {
  JsonScanner scanner;
  const std::size_t read = scanner.scan(text);
  if (scanner.is_invalid()) return fmt::format("{}, at byte {}", fault_at(text, read), read);
  if (!scanner.is_complete()) return "it is cut short";
  const std::size_t rest = std::min(text.find_first_not_of(" \t\r\n", read), text.size());
  const bool is_second = text.substr(rest).starts_with('{');
  return fmt::format("{} follows its end, at byte {}", is_second ? "another object" : "text", rest);
}

}  // namespace teratron
