// Strings of JSON.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// Appends `text` (valid UTF-8) as a JSON string with its quotes.
void append_json_string(std::string_view text, std::string& out);

}  // namespace teratron
