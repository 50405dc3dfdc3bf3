// windows-1252, the encoding that is often read as Latin-1. Unassigned bytes (0x81, 0x8D, 0x8F, 0x90, 0x9D) are the
// control characters of the same number, as in browsers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace teratron {

inline constexpr std::array<char16_t, 32> kWindows1252 = {
    0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x008D, 0x017D, 0x008F, 0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x009D, 0x017E, 0x0178};

constexpr char32_t windows_1252_character(std::uint8_t byte) {
  return byte >= 0x80 && byte < 0xA0 ? static_cast<char32_t>(kWindows1252[byte - 0x80U]) : byte;
}

// The byte of this character, if there is one.
constexpr std::optional<std::uint8_t> windows_1252_byte(char32_t code) {
  if (code < 0x80 || (code >= 0xA0 && code < 0x100)) return static_cast<std::uint8_t>(code);
  for (std::size_t i = 0; i < kWindows1252.size(); ++i) {
    if (kWindows1252[i] == code) return static_cast<std::uint8_t>(0x80 + i);
  }
  return std::nullopt;
}

}  // namespace teratron
