// Replacement of words inside a text.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace teratron {

// Replaces each `from` by `to`, from left to right, as Python's str.replace(). `from` is not empty.
inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::size_t found = text.find(from);
  if (found == std::string::npos) return;
  std::string result;
  result.reserve(text.size());
  std::size_t begin = 0;
  for (; found != std::string::npos; found = text.find(from, begin)) {
    result.append(text, begin, found - begin).append(to);
    begin = found + from.size();
  }
  result.append(text, begin);
  text = std::move(result);
}

}  // namespace teratron
