// Strict UTF-8 (Unicode 16, section 3.9, table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace teratron {

enum class Utf8Status : std::uint8_t {
  kValid,
  kInvalid,    // `length` bytes cannot begin a character
  kUnfinished  // the text ends inside what may be a character
};

struct Utf8Step {
  char32_t code = 0;        // where valid
  std::uint8_t length = 1;  // bytes to step over; where invalid, the maximal part that could begin a character
  Utf8Status status = Utf8Status::kInvalid;
};

// Decodes the character at the beginning of `text`, which is not empty.
inline Utf8Step decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, Utf8Status::kValid};
  if (lead < 0xC2 || lead > 0xF4) return {};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range is narrower after some leads, which rules out overlong forms and surrogates.
  std::uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  std::uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  auto code = static_cast<char32_t>(lead & (0x7F >> length));
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {0, static_cast<std::uint8_t>(i), Utf8Status::kUnfinished};
    if (byte(i) < low || byte(i) > high) return {0, static_cast<std::uint8_t>(i), Utf8Status::kInvalid};
    code = (code << 6) | (byte(i) & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {code, static_cast<std::uint8_t>(length), Utf8Status::kValid};
}

inline bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    if (step.status != Utf8Status::kValid) return false;
    text.remove_prefix(step.length);
  }
  return true;
}

// Whether a byte is within a character, after its first one.
constexpr bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The offset of the last character of `text`, which is not empty.
constexpr std::size_t last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && continues_character(text[at])) --at;
  return at;
}

// Number of characters of valid UTF-8.
inline std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (const char byte : text) count += continues_character(byte) ? 0 : 1;
  return count;
}

// Bytes that append_utf8() appends.
inline std::size_t utf8_length(char32_t code) { return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4; }

// Appends `code`, a Unicode scalar value.
inline void append_utf8(char32_t code, std::string& out) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | (code >> 6));
  } else {
    if (code < 0x10000) {
      put(0xE0 | (code >> 12));
    } else {
      put(0xF0 | (code >> 18));
      put(0x80 | ((code >> 12) & 0x3F));
    }
    put(0x80 | ((code >> 6) & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

}  // namespace teratron
