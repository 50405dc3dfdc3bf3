#include "corpus/clean/mojibake.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "corpus/clean/garbled_signs.h"
#include "corpus/clean/windows_1252.h"

namespace teratron {
namespace {

std::uint8_t byte_at(std::string_view bytes, std::size_t at) {
  return at < bytes.size() ? static_cast<std::uint8_t>(bytes[at]) : 0;
}

// Length of a sequence at the beginning of `bytes` in which one space stands for the byte A0 and which becomes a likely
// character; 0 if there is none.
std::size_t spaced_sequence(std::string_view bytes) {
  const std::uint8_t lead = byte_at(bytes, 0);
  const auto is_space = [&](std::size_t at) { return byte_at(bytes, at) == ' '; };
  const auto is_other = [&](std::size_t at) { return is_continuation(byte_at(bytes, at)); };
  constexpr std::string_view kLeadsOfTwo = "\xC2\xC3\xC5\xCE\xD0\xD9";
  if (kLeadsOfTwo.find(static_cast<char>(lead)) != kLeadsOfTwo.npos && is_space(1)) return 2;
  if (lead >= 0xE0 && lead <= 0xE3) {
    const auto is_third = [&](std::size_t at) {
      return is_other(at) && byte_at(bytes, at) != 0x85 && byte_at(bytes, at) != 0xA0;
    };
    if ((lead >= 0xE2 && is_space(1) && is_third(2)) || (is_third(1) && is_space(2))) return 3;
  }
  if (lead != 0xF0) return 0;
  for (std::size_t space = 1; space < 4; ++space) {
    bool fits = is_space(space);
    for (std::size_t at = 1; at < 4; ++at) fits = fits && (at == space || is_other(at));
    if (fits) return 4;
  }
  return 0;
}

// "à" is mostly a word of its own, so the space after it stays, except in the Portuguese às, àquele, àquela, àquilo.
bool is_word_a_grave(std::string_view bytes) {
  if (!bytes.starts_with("\xC3 ")) return false;
  constexpr std::array<std::string_view, 5> kGoesOn = {" ", "quele", "quela", "quilo", "s "};
  return std::ranges::none_of(kGoesOn, [&](std::string_view next) { return bytes.substr(2).starts_with(next); });
}

// Length of a sequence at the beginning of `bytes` that has lost bytes (one of them may be a question mark); 0 if there
// is none.
std::size_t lossy_sequence(std::string_view bytes) {
  const std::uint8_t lead = byte_at(bytes, 0);
  if (lead == kLostByte) return 1;
  const std::size_t length = sequence_length(lead);
  if (length == 1 || bytes.size() < length) return 0;
  int lost = 0, questions = 0;
  for (const char next : bytes.substr(1, length - 1)) {
    questions += next == '?' ? 1 : 0;
    lost += next == kLostByte ? 1 : 0;
    if (next != '?' && next != kLostByte && !is_continuation(static_cast<std::uint8_t>(next))) return 0;
  }
  if (questions + lost == 0 || questions > 1 || (questions == 1 && length == 2 && lead > 0xC3)) return 0;
  return length;
}

}  // namespace

std::string with_spaces_restored(std::string_view bytes) {
  std::string restored;
  while (!bytes.empty()) {
    std::size_t length = 1;
    if (is_word_a_grave(bytes)) {
      restored += "\xC3\xA0 ";
      length = 2;
    } else if (const std::size_t sequence = spaced_sequence(bytes); sequence > 0) {
      for (const char byte : bytes.substr(0, sequence)) restored.push_back(byte == ' ' ? '\xA0' : byte);
      length = sequence;
    } else {
      restored.push_back(bytes.front());
    }
    bytes.remove_prefix(length);
  }
  return restored;
}

std::string with_losses_shown(std::string_view bytes) {
  std::string shown;
  while (!bytes.empty()) {
    const std::size_t lossy = lossy_sequence(bytes);
    if (lossy > 0) {
      append_utf8(0xFFFD, shown);
    } else {
      shown.push_back(bytes.front());
    }
    bytes.remove_prefix(std::max<std::size_t>(1, lossy));
  }
  return shown;
}

namespace {

// Empty if `text` is not UTF-8.
std::optional<std::u32string> decoded(std::string_view text) {
  std::u32string codes;
  codes.reserve(text.size());
  for (; !text.empty();) {
    const Utf8Step step = decode_utf8(text);
    if (step.status != Utf8Status::kValid) return std::nullopt;
    codes.push_back(step.code);
    text.remove_prefix(step.length);
  }
  return codes;
}

// The bytes that Latin-1 shows as this text; empty if a character is not in Latin-1.
std::optional<std::string> latin1_bytes(std::u32string_view text) {
  if (std::ranges::any_of(text, [](char32_t code) { return code > 0xFF; })) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size());
  for (const char32_t code : text) bytes.push_back(static_cast<char>(code));
  return bytes;
}

std::optional<std::string> windows_1252_bytes(std::u32string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (const char32_t code : text) {
    const auto byte = windows_1252_byte(code);
    if ((!byte && code != 0xFFFD) || code == static_cast<char32_t>(kLostByte)) return std::nullopt;
    bytes.push_back(byte ? static_cast<char>(*byte) : kLostByte);
  }
  return bytes;
}

std::optional<std::u32string> mended_whole(std::u32string_view line) {
  for (const auto& [bytes, is_lossy] :
       {std::pair{latin1_bytes(line), false}, std::pair{windows_1252_bytes(line), true}}) {
    if (!bytes) continue;
    std::string restored = with_spaces_restored(*bytes);
    if (is_lossy) restored = with_losses_shown(restored);
    if (auto codes = decoded(restored)) return codes;
  }
  return std::nullopt;
}

std::u32string mended(std::u32string line);

std::u32string mended_runs(std::u32string_view line) {
  std::u32string out;
  for (std::size_t at = 0; at < line.size();) {
    const bool may_begin = at == 0 || !is_surely_continuation(line[at - 1]);
    const std::size_t run = may_begin ? shown_run(line.substr(at)) : 0;
    const std::u32string_view part = line.substr(at, std::max<std::size_t>(1, run));
    const bool is_alone = run > 0 && run < line.size();
    out += is_alone && looks_garbled(part) ? mended(std::u32string(part)) : std::u32string(part);
    at += part.size();
  }
  return out;
}

std::u32string mended_once(const std::u32string& line) {
  if (!looks_garbled(line)) return line;
  if (auto whole = mended_whole(line)) return *whole;
  std::u32string changed = mended_runs(line);
  if (changed != line) return changed;
  for (char32_t& code : changed) {
    if (code >= 0x80 && code < 0xA0) code = windows_1252_character(static_cast<std::uint8_t>(code));
  }
  return changed;
}

std::u32string mended(std::u32string line) {
  while (true) {
    std::u32string next = mended_once(line);
    if (next == line) return line;
    line = std::move(next);
  }
}

bool is_ascii(std::string_view line) {
  return std::ranges::all_of(line, [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

}  // namespace

std::string mend_mojibake(std::string_view line) {
  if (is_ascii(line)) return std::string(line);
  const auto codes = decoded(line);
  if (!codes || !looks_garbled(*codes)) return std::string(line);
  std::string out;
  for (const char32_t code : mended(*codes)) append_utf8(code, out);
  return out;
}

}  // namespace teratron
