#include "base/json_string.h"

#include <fmt/format.h>

#include <algorithm>

namespace teratron {

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

}  // namespace teratron
