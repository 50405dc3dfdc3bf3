// The lines of a WARC or HTTP head: a first line, "Name: value" lines, and an empty line.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/ascii.h"

namespace teratron {

struct HeaderField {
  std::string_view name, value;  // without surrounding spaces
};

inline HeaderField header_field(std::string_view line) {
  const std::size_t colon = std::min(line.find(':'), line.size());
  return {.name = without_ascii_spaces(line.substr(0, colon)),
          .value = without_ascii_spaces(line.substr(std::min(colon + 1, line.size())))};
}

class HeaderLines {
 public:
  explicit HeaderLines(std::string_view text) : text_(text) {}

  // The line without its end, CRLF or LF. Empty: the text ends before a line does.
  std::optional<std::string_view> next() {
    const std::size_t end = text_.find('\n', at_);
    if (end == text_.npos) return std::nullopt;
    std::string_view line = text_.substr(at_, end - at_);
    at_ = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }
  std::size_t bytes_read() const { return at_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace teratron
