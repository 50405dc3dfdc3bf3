// JSON text read along its grammar (RFC 8259) and no further: numbers of any size and any depth are JSON, as they are
// to other programs. simdjson reads values, which have limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace teratron {

// Takes a text piece by piece. What strings hold is not looked into but for their escapes: UTF-8 is for others to
// check.
class JsonScanner {
 public:
  // Reads on until the text ends, its first value is complete, or a byte cannot follow. Returns the bytes read; a value
  // that is a number ends before the byte behind it.
  std::size_t scan(std::string_view text);

  bool is_complete() const { return state_ == State::kDone || (depth() == 0 && may_end_number()); }
  bool is_invalid() const { return state_ == State::kInvalid; }
  std::size_t depth() const { return objects_.size(); }
  // Keys of objects with the colon behind them, so far.
  std::int64_t keys() const { return keys_; }

 private:
  enum class State : std::uint8_t {
    kValue,         // before a value
    kFirstValue,    // behind "[": a value, or the end
    kFirstKey,      // behind "{"
    kKey,           // behind "," in an object
    kColon,         // behind a key
    kBehindValue,   // in an array or object
    kString,        // behind the opening quote
    kEscape,        // behind a backslash
    kHexadecimal,   // in the digits of \u
    kMinus,         // of a number
    kZero,          // and nothing before
    kDigits,        // before a point
    kPoint,         // which digits have to follow
    kFraction,      // digits behind a point
    kExponent,      // behind "e"
    kExponentSign,  // behind "e-"
    kExponentDigits,
    kLiteral,  // in true, false, null
    kDone,
    kInvalid,
  };

  bool step(char c);  // whether the byte was taken; otherwise the state has changed, and it is looked at again
  void begin_value(char c);
  void end_value() { state_ = objects_.empty() ? State::kDone : State::kBehindValue; }
  void behind_value(char c);
  void within_string(char c);
  void number(char c);
  bool may_end_number() const {
    return state_ == State::kZero || state_ == State::kDigits || state_ == State::kFraction ||
           state_ == State::kExponentDigits;
  }

  State state_ = State::kValue;
  std::vector<bool> objects_;  // what is open, from the outside in: an object, or an array
  std::string_view literal_;   // what is to come of it
  int digits_ = 0;             // of \u, to come
  bool is_key_ = false;        // the string at hand
  std::int64_t keys_ = 0;
};

// Whether a text is one JSON value, with white space around it.
bool is_json(std::string_view text);

}  // namespace teratron
