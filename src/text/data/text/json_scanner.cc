#include "data/text/json_scanner.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/text/content.h"
#include "data/text/input_files.h"

namespace teratron {

namespace {

constexpr bool is_json_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
constexpr bool is_decimal(char c) { return c >= '0' && c <= '9'; }

// The first byte from `at` on that may end a string, begins an escape, or is not allowed in one.
std::size_t string_run_end(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] != '"' && text[at] != '\\' && static_cast<unsigned char>(text[at]) >= 0x20) ++at;
  return at;
}

}  // namespace

std::size_t JsonScanner::scan(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && state_ != State::kDone && state_ != State::kInvalid) {
    if (state_ == State::kString) {
      at = string_run_end(text, at);
      if (at == text.size()) break;
    }
    at += step(text[at]) ? 1 : 0;
  }
  return at;
}

bool JsonScanner::step(char c) {
  switch (state_) {
    case State::kValue:
    case State::kFirstValue:
      if (!is_json_space(c)) begin_value(c);
      break;
    case State::kFirstKey:
    case State::kKey:
      if (c == '"') {
        state_ = State::kString;
        is_key_ = true;
      } else if (c == '}' && state_ == State::kFirstKey) {
        objects_.pop_back();
        end_value();
      } else if (!is_json_space(c)) {
        state_ = State::kInvalid;
      }
      break;
    case State::kColon:
      if (is_json_space(c)) break;
      keys_ += c == ':' ? 1 : 0;
      state_ = c == ':' ? State::kValue : State::kInvalid;
      break;
    case State::kBehindValue:
      if (!is_json_space(c)) behind_value(c);
      break;
    case State::kString:
    case State::kEscape:
    case State::kHexadecimal: within_string(c); break;
    case State::kLiteral:
      if (c != literal_.front()) {
        state_ = State::kInvalid;
        break;
      }
      literal_.remove_prefix(1);
      if (literal_.empty()) end_value();
      break;
    default: {
      const bool may_end = may_end_number();
      const State before = state_;
      number(c);
      if (state_ != State::kInvalid || !may_end) break;
      state_ = before;
      end_value();
      return false;
    }
  }
  return state_ != State::kInvalid;
}

void JsonScanner::within_string(char c) {
  if (state_ == State::kEscape) {
    digits_ = 4;
    const bool is_known = std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    state_ = c == 'u' ? State::kHexadecimal : is_known ? State::kString : State::kInvalid;
  } else if (state_ == State::kHexadecimal) {
    const bool is_digit = is_decimal(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
    if (!is_digit || --digits_ == 0) state_ = is_digit ? State::kString : State::kInvalid;
  } else if (c == '\\') {
    state_ = State::kEscape;
  } else if (c != '"') {
    state_ = State::kInvalid;  // a control
  } else if (is_key_) {
    state_ = State::kColon;
  } else {
    end_value();
  }
}

void JsonScanner::begin_value(char c) {
  is_key_ = false;
  switch (c) {
    case '"': state_ = State::kString; return;
    case '-': state_ = State::kMinus; return;
    case '0': state_ = State::kZero; return;
    case 't': literal_ = "rue"; break;
    case 'f': literal_ = "alse"; break;
    case 'n': literal_ = "ull"; break;
    case '[':
    case '{':
      objects_.push_back(c == '{');
      state_ = c == '{' ? State::kFirstKey : State::kFirstValue;
      return;
    case ']':
      if (state_ != State::kFirstValue) break;
      objects_.pop_back();
      end_value();
      return;
    default: break;
  }
  const bool is_literal = c == 't' || c == 'f' || c == 'n';
  state_ = is_literal ? State::kLiteral : is_decimal(c) ? State::kDigits : State::kInvalid;
}

void JsonScanner::behind_value(char c) {
  const bool in_object = objects_.back();
  if (c == ',') {
    state_ = in_object ? State::kKey : State::kValue;
  } else if (c == (in_object ? '}' : ']')) {
    objects_.pop_back();
    end_value();
  } else {
    state_ = State::kInvalid;
  }
}

// The state after another byte of a number; kInvalid if it cannot follow.
void JsonScanner::number(char c) {
  const State before = std::exchange(state_, State::kInvalid);
  const bool is_whole = before == State::kZero || before == State::kDigits;
  if (c == '.' && is_whole) {
    state_ = State::kPoint;
  } else if ((c == 'e' || c == 'E') && (is_whole || before == State::kFraction)) {
    state_ = State::kExponent;
  } else if ((c == '+' || c == '-') && before == State::kExponent) {
    state_ = State::kExponentSign;
  } else if (is_decimal(c)) {
    switch (before) {
      case State::kMinus: state_ = c == '0' ? State::kZero : State::kDigits; break;
      case State::kDigits: state_ = State::kDigits; break;
      case State::kPoint:
      case State::kFraction: state_ = State::kFraction; break;
      case State::kExponent:
      case State::kExponentSign:
      case State::kExponentDigits: state_ = State::kExponentDigits; break;
      default: break;  // after a zero
    }
  }
}

bool is_json(std::string_view text) {
  JsonScanner scanner;
  const std::size_t read = scanner.scan(text);
  return scanner.is_complete() && std::ranges::all_of(text.substr(read), is_json_space);
}

std::size_t ArrayElements::scan(std::string& text,
                                const std::function<void(std::size_t begin, std::size_t end)>& element) {
  std::size_t begin = 0, at = scanned_;
  while (at < text.size()) {
    if (!is_open_) {
      at = begin = open_array(text, at);
      if (!is_open_) break;
      continue;
    }
    if (in_string_) {
      at = skip_string(text, at);
      continue;
    }
    char& c = text[at];
    const bool is_end = depth_ == 0 && (c == ',' || c == ']');
    if (is_end) {
      const bool is_empty = is_blank(std::string_view(text).substr(begin, at - begin));
      if (!is_empty || has_comma_ || c == ',') element(begin, at);
      has_comma_ = c == ',';
      is_open_ = c == ',';
      begin = at + 1;
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      depth_ -= depth_ > 0 ? 1 : 0;
    } else if (c == '\n' || c == '\r') {
      c = ' ';
    }
    ++at;
  }
  scanned_ = is_open_ ? text.size() - begin : 0;
  return begin;
}

// The offset of the first element; otherwise of a possible beginning of a byte order mark, or the text's end.
std::size_t ArrayElements::open_array(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with(kByteOrderMark)) {
      at += kByteOrderMark.size();
    } else if (kByteOrderMark.starts_with(rest)) {
      break;
    } else if (is_blank(rest.substr(0, 1))) {
      ++at;
    } else if (rest.front() == '[') {
      is_open_ = true;
      return at + 1;
    } else {
      throw_user_error(
          "text follows the end of its JSON array, and it is no other array; write a document a line, or one "
          "array");
    }
  }
  return at;
}

// The offset after the closing quote, or the text's end.
std::size_t ArrayElements::skip_string(std::string_view text, std::size_t at) {
  for (; at < text.size(); ++at) {
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (text[at] == '\\') {
      is_escaped_ = true;
    } else if (text[at] == '"') {
      in_string_ = false;
      return at + 1;
    }
  }
  return at;
}

}  // namespace teratron
