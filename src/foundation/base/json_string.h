// JSON as text.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// The text of a value of nlohmann::json, on one line, or with line breaks and `indent` spaces a level. Bytes that are
// not UTF-8 become U+FFFD.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Appends `text` (valid UTF-8) as a JSON string with its quotes.
void append_json_string(std::string_view text, std::string& out);

}  // namespace teratron
