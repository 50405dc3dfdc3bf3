#include "corpus/clean/damaged_utf8.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "corpus/clean/shown_sequences.h"

namespace teratron {
namespace {

std::uint8_t byte_at(std::string_view bytes, std::size_t at) {
  return at < bytes.size() ? static_cast<std::uint8_t>(bytes[at]) : 0;
}

// The length of a sequence at the beginning of `bytes` in which one space stands for the byte A0, of those that become
// likely characters; 0: none.
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

// "à" is mostly a word of its own: the space after it stays, but in the Portuguese às, àquele, àquela, àquilo.
bool is_word_a_grave(std::string_view bytes) {
  if (!bytes.starts_with("\xC3 ")) return false;
  constexpr std::array<std::string_view, 5> kGoesOn = {" ", "quele", "quela", "quilo", "s "};
  return std::ranges::none_of(kGoesOn, [&](std::string_view next) { return bytes.substr(2).starts_with(next); });
}

// The length of a sequence at the beginning of `bytes` that has lost bytes, one of them as a question mark perhaps;
// 0: none.
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

}  // namespace teratron
