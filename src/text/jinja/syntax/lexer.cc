#include "jinja/syntax/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/ascii.h"
#include "base/utf8.h"
#include "jinja/error.h"
#include "jinja/values/python_text.h"

namespace teratron::jinja {
namespace {

using Kind = Token::Kind;

// Line ends are one kind, and one at the end is left out.
std::string with_line_feeds(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      out += '\n';
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

// Whether the text is a tag of one word, with white space around.
bool is_tag(std::string_view text, std::string_view word, std::initializer_list<std::string_view> ends) {
  text = stripped(text, std::nullopt, true, false);
  if (!text.starts_with(word)) return false;
  text = stripped(text.substr(word.size()), std::nullopt, true, false);
  return std::ranges::any_of(ends, [&](std::string_view end) { return text.starts_with(end); });
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(with_line_feeds(source)), rest_(source_) {}

  std::vector<Token> tokens() {
    while (!rest_.empty()) read_text_and_tag();
    add(Kind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fault(std::string_view what) const { fail("line {}: {}", line_, what); }

  Token& add(Kind kind, std::string_view text) {
    return tokens_.emplace_back(Token{.kind = kind, .text = std::string(text), .line = line_});
  }

  void skip(std::size_t bytes) {
    line_ += static_cast<int>(std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(bytes), '\n'));
    if (bytes > 0) at_line_begin_ = rest_[bytes - 1] == '\n';
    rest_.remove_prefix(bytes);
  }

  void skip_white_space() { skip(rest_.size() - stripped(rest_, std::nullopt, true, false).size()); }

  // Text before a tag whose first sign after its braces is `sign`; `lstrip`: of a block or a comment.
  void add_text(std::string_view text, char sign, bool lstrip) {
    if (sign == '-') {
      text = stripped(text, std::nullopt, false, true);
    } else if (sign != '+' && lstrip) {
      const std::size_t begin = text.rfind('\n') + 1;  // 0: there is none
      const bool is_white = stripped(text.substr(begin), std::nullopt, true, false).empty();
      if (is_white && (begin > 0 || at_line_begin_)) text = text.substr(0, begin);
    }
    if (!text.empty()) add(Kind::kData, text);
  }

  void read_text_and_tag() {
    std::size_t at = 0;
    for (;; ++at) {
      at = rest_.find('{', at);
      if (at == std::string_view::npos) {
        add(Kind::kData, rest_);
        skip(rest_.size());
        return;
      }
      if (at + 1 < rest_.size() && std::string_view("{%#").find(rest_[at + 1]) != std::string_view::npos) break;
    }
    const char tag = rest_[at + 1];
    const std::string_view after = rest_.substr(at + 2);
    const char sign = !after.empty() && (after[0] == '-' || after[0] == '+') ? after[0] : ' ';
    add_text(rest_.substr(0, at), sign, tag != '{');
    skip(at + (sign == ' ' ? 2 : 3));
    if (tag == '#') {
      read_comment();
    } else if (tag == '%' && is_tag(rest_, "raw", {"%}", "-%}"})) {
      read_raw();
    } else {
      read_expression(tag == '%');
    }
  }

  // The end of a block or comment, "%}" or "#}", at the beginning of the rest.
  bool skip_end(std::string_view end) {
    if (rest_.starts_with('-') && rest_.substr(1).starts_with(end)) {
      skip(1 + end.size());
      skip_white_space();
      return true;
    }
    const bool keeps = rest_.starts_with('+') && rest_.substr(1).starts_with(end);
    if (!keeps && !rest_.starts_with(end)) return false;
    skip(end.size() + (keeps ? 1 : 0));
    if (!keeps && rest_.starts_with('\n')) skip(1);
    return true;
  }

  void read_comment() {
    const std::size_t end = rest_.find("#}");
    if (end == std::string_view::npos) fault("Missing end of comment tag");
    const bool has_sign = end > 0 && (rest_[end - 1] == '-' || rest_[end - 1] == '+');
    skip(end - (has_sign ? 1 : 0));
    skip_end("#}");
  }

  void read_raw() {
    const std::size_t end = rest_.find("%}");
    if (rest_[end - 1] == '-') {
      skip(end - 1);
      skip_end("%}");
    } else {
      skip(end + 2);  // what follows stays as it is
    }
    for (std::size_t at = rest_.find("{%"); at != std::string_view::npos; at = rest_.find("{%", at + 1)) {
      std::string_view tag = rest_.substr(at + 2);
      const char sign = tag.starts_with('-') || tag.starts_with('+') ? tag[0] : ' ';
      if (sign != ' ') tag.remove_prefix(1);
      if (!is_tag(tag, "endraw", {"%}", "-%}", "+%}"})) continue;
      add_text(rest_.substr(0, at), sign, true);
      skip(rest_.find("endraw", at) + std::string_view("endraw").size());
      skip_white_space();
      skip_end("%}");
      return;
    }
    fault("Missing end of raw directive");
  }

  void read_expression(bool block) {
    add(block ? Kind::kBlockBegin : Kind::kVariableBegin, "");
    std::string open;  // brackets that have not been closed
    while (true) {
      if (open.empty() && block && skip_end("%}")) break;
      if (open.empty() && !block && skip_variable_end()) break;
      if (rest_.empty()) fault("the template ends within a tag");
      read_token(open);
    }
    add(block ? Kind::kBlockEnd : Kind::kVariableEnd, "");
  }

  bool skip_variable_end() {
    if (rest_.starts_with("-}}")) {
      skip(3);
      skip_white_space();
      return true;
    }
    if (!rest_.starts_with("}}")) return false;
    skip(2);
    return true;
  }

  void read_token(std::string& open) {
    const char c = rest_[0];
    if (is_white_space(decode_utf8(rest_).code)) return skip_white_space();
    if (is_ascii_digit(c)) return read_number();
    if (stands_in_name(decode_utf8(rest_).code, /*first=*/true)) return read_name();
    if (c == '"' || c == '\'') return read_string();
    constexpr std::array<std::string_view, 27> kOperators = {"**", "//", "==", "!=", "<=", ">=", "+", "-", "*",
                                                             "/",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                             ">",  "<",  "=",  ".",  ":",  "|",  ",", ";", ""};
    const auto sign = std::ranges::find_if(kOperators, [&](std::string_view one) { return rest_.starts_with(one); });
    if (sign->empty()) fault(fmt::format("unexpected char '{}'", rest_.substr(0, decode_utf8(rest_).length)));
    balance(c, open);
    add(Kind::kOperator, *sign);
    skip(sign->size());
  }

  void balance(char c, std::string& open) const {
    constexpr std::string_view kOpen = "([{", kClose = ")]}";
    if (kOpen.find(c) != std::string_view::npos) open += c;
    const std::size_t closing = kClose.find(c);
    if (closing == std::string_view::npos) return;
    if (open.empty()) fault(fmt::format("unexpected '{}'", c));
    if (open.back() != kOpen[closing])
      fault(fmt::format("unexpected '{}', expected '{}'", c, kClose[kOpen.find(open.back())]));
    open.pop_back();
  }

  void read_name() {
    std::size_t end = 0;
    while (end < rest_.size()) {
      const Utf8Step step = decode_utf8(rest_.substr(end));
      if (!stands_in_name(step.code, end == 0)) break;
      end += step.length;
    }
    add(Kind::kName, rest_.substr(0, end));
    skip(end);
  }

  std::size_t digits_from(std::size_t at) const {
    while (at < rest_.size() &&
           (is_ascii_digit(rest_[at]) || (rest_[at] == '_' && at + 1 < rest_.size() && is_ascii_digit(rest_[at + 1]))))
      ++at;
    return at;
  }

  void read_number() {
    std::size_t end = digits_from(0);
    bool real = false;
    const bool after_point = !tokens_.empty() && tokens_.back().is(".");
    if (!after_point && end + 1 < rest_.size() && rest_[end] == '.' && is_ascii_digit(rest_[end + 1])) {
      end = digits_from(end + 1);
      real = true;
    }
    if (!after_point && end < rest_.size() && (rest_[end] == 'e' || rest_[end] == 'E')) {
      const std::size_t sign = end + 1 < rest_.size() && (rest_[end + 1] == '-' || rest_[end + 1] == '+') ? 1 : 0;
      if (end + 1 + sign < rest_.size() && is_ascii_digit(rest_[end + 1 + sign])) {
        end = digits_from(end + 1 + sign);
        real = true;
      }
    }
    if (end < rest_.size() && stands_in_name(decode_utf8(rest_.substr(end)).code, /*first=*/false))
      fault("a number with letters, which is not supported");
    std::string digits;
    std::ranges::remove_copy(rest_.substr(0, end), std::back_inserter(digits), '_');
    if (!real && digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != std::string::npos) {
      fault("an integer that begins with 0");
    }
    Token& token = add(real ? Kind::kFloat : Kind::kInteger, digits);
    const char *first = token.text.data(), *last = first + token.text.size();
    if (real) {
      token.number = real_of(digits).value();
    } else if (std::from_chars(first, last, token.integer).ec != std::errc()) {
      fault(fmt::format("the number {} is too large", digits));
    }
    skip(end);
  }

  void read_string() {
    const char quote = rest_[0];
    std::string text;
    std::size_t at = 1;
    while (at < rest_.size() && rest_[at] != quote) {
      if (rest_[at] == '\\' && at + 1 < rest_.size()) {
        at += read_escape(rest_.substr(at), text);
      } else {
        text += rest_[at++];
      }
    }
    if (at >= rest_.size()) fault("a string without an end");
    add(Kind::kString, text);
    skip(at + 1);
  }

  // Bytes that an escape of Python takes; appends its character.
  std::size_t read_escape(std::string_view escape, std::string& out) const {
    constexpr std::string_view kLetters = "\\'\"abfnrtv", kCodes = "\\'\"\a\b\f\n\r\t\v";
    const char c = escape[1];
    if (static_cast<unsigned char>(c) >= 0x80) fault("an escape of a letter beyond ASCII, which is not supported");
    if (c == '\n') return 2;  // the line goes on
    if (const std::size_t at = kLetters.find(c); at != std::string_view::npos) {
      out += kCodes[at];
      return 2;
    }
    const bool octal = c >= '0' && c <= '7';
    std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (c == 'N') fault("a \\N escape, which is not supported");
    if (!octal && digits == 0) {  // no escape
      out += '\\';
      return 1;
    }
    const std::size_t begin = octal ? 1 : 2;
    if (octal) {
      while (digits < 3 && begin + digits < escape.size() && escape[begin + digits] >= '0' &&
             escape[begin + digits] <= '7')
        ++digits;
    }
    std::uint32_t code = 0;
    const std::string_view number = escape.substr(std::min(begin, escape.size()), digits);
    const auto read = std::from_chars(number.data(), number.data() + number.size(), code, octal ? 8 : 16);
    if (number.size() != digits || read.ec != std::errc() || read.ptr != number.data() + number.size()) {
      fault("truncated escape in a string");
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) fault("an escape that is no character");
    append_utf8(code, out);
    return begin + digits;
  }

  const std::string source_;
  std::string_view rest_;
  int line_ = 1;
  bool at_line_begin_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) { return Lexer(source).tokens(); }

}  // namespace teratron::jinja
