#include "data/text/json_scanner.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"

namespace teratron {
namespace {

constexpr bool is_json_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

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
    case State::kAfterValue:
      if (!is_json_space(c)) after_value(c);
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
    const bool is_digit = is_ascii_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
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
  state_ = is_literal ? State::kLiteral : is_ascii_digit(c) ? State::kDigits : State::kInvalid;
}

void JsonScanner::after_value(char c) {
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
  } else if (is_ascii_digit(c)) {
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

}  // namespace teratron
