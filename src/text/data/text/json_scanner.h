// Scans JSON text by its grammar (RFC 8259) only: numbers of any size and any depth are JSON, as in other programs.
// simdjson parses values, which have limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace teratron {

// Scans a text piece by piece. In strings it checks escapes only: the caller checks UTF-8.
class JsonScanner {
 public:
  // Scans until the text ends, its first value is complete, or a byte cannot follow. Returns the bytes read; a number
  // ends before the byte after it.
  std::size_t scan(std::string_view text);

  bool is_complete() const { return state_ == State::kDone || (depth() == 0 && may_end_number()); }
  bool is_invalid() const { return state_ == State::kInvalid; }
  std::size_t depth() const { return objects_.size(); }
  // Keys of objects with their colon, so far.
  std::int64_t keys() const { return keys_; }

 private:
  enum class State : std::uint8_t {
    kValue,         // before a value
    kFirstValue,    // after "[": a value, or the end
    kFirstKey,      // after "{"
    kKey,           // after "," in an object
    kColon,         // after a key
    kAfterValue,    // after a value in an array or object
    kString,        // after the opening quote
    kEscape,        // after a backslash
    kHexadecimal,   // in the digits of \u
    kMinus,         // of a number
    kZero,          // and nothing before
    kDigits,        // before a point
    kPoint,         // digits have to follow
    kFraction,      // digits after a point
    kExponent,      // after "e"
    kExponentSign,  // after "e-"
    kExponentDigits,
    kLiteral,  // in true, false, null
    kDone,
    kInvalid,
  };

  bool step(char c);  // whether the byte was taken; otherwise the state has changed, and the byte is tried again
  void begin_value(char c);
  void end_value() { state_ = objects_.empty() ? State::kDone : State::kAfterValue; }
  void after_value(char c);
  void within_string(char c);
  void number(char c);
  bool may_end_number() const {
    return state_ == State::kZero || state_ == State::kDigits || state_ == State::kFraction ||
           state_ == State::kExponentDigits;
  }

  State state_ = State::kValue;
  std::vector<bool> objects_;  // open arrays (false) and objects, from the outside in
  std::string_view literal_;   // its expected rest
  int digits_ = 0;             // of \u, expected
  bool is_key_ = false;        // the current string is a key
  std::int64_t keys_ = 0;
};

// Whether a text is one JSON value, with white space around it.
bool is_json(std::string_view text);

}  // namespace teratron
