// Letters, digits and spaces of ASCII, whatever the locale.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace teratron {

constexpr bool is_ascii_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }
constexpr char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool is_ascii_letter(char c) { return ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z'; }
constexpr bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

inline std::string ascii_lower(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = ascii_lower(c);
  return small;
}

constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, {}, [](char c) { return ascii_lower(c); }, [](char c) { return ascii_lower(c); });
}

constexpr bool begins_ignoring_case(std::string_view text, std::string_view begin) {
  return equals_ignoring_case(text.substr(0, begin.size()), begin);
}

constexpr std::string_view without_ascii_spaces(std::string_view text) {  // at both ends
  while (!text.empty() && is_ascii_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_ascii_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace teratron
