// Values as text: Python's str() and repr(), and json.dumps().
#pragma once

#include <optional>
#include <string>

#include "jinja/values/value.h"

namespace teratron::jinja {

// str(), as a template writes a value. Error: an iterator or a function, whose text would be an address.
std::string text_of(const Value& value);
// Appends str() of a value to a text that is being made. Errors: text_of()'s and append()'s.
void append_text_of(const Value& value, std::string& out);
std::string repr(const Value& value);

struct JsonForm {
  bool ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // of a level; without it, one line
  std::string between = ", ", after_key = ": ";
};
// json.dumps(). Error: "Object of type .. is not JSON serializable".
std::string to_json(const Value& value, const JsonForm& form);

}  // namespace teratron::jinja
