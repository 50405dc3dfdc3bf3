#include "corpus/clean/shown_sequences.h"

#include <algorithm>
#include <string_view>

#include "corpus/clean/windows_1252.h"

namespace teratron {
namespace {

// Leads and continuations of windows-1250, 1251, 1253, 1254 and 1257, beside those of windows-1252. Text that went
// through these encodings is recognised so that no half of it is mended.
constexpr std::u32string_view kOtherLeadsOfTwo =
    U"\u0100\u0102\u0106\u010C\u010E\u0110\u0112\u0116\u0118\u011A\u011E\u0122\u012A\u0130\u0136\u0139\u013B\u0141"
    U"\u0143\u0145\u0147\u014C\u0150\u0158\u015A\u015E\u0160\u0162\u016A\u016E\u0170\u0172\u0179\u017B\u017D";
constexpr std::u32string_view kOtherLeadsOfThree =
    U"\u0101\u0103\u0105\u0107\u010D\u010F\u0113\u0117\u0119\u011B\u0123\u012B\u012F\u0137\u013A\u013C\u0155\u017A";
constexpr std::u32string_view kOtherLeadsOfFour = U"\u00F3\u0111\u011F\u0161\u03C0\u03C3\u0440\u0443";
constexpr std::u32string_view kOtherContinuations =
    U"\u00C6\u00D8\u00E6\u00F8\u0104\u0105\u013D\u013E\u0141\u0142\u0156\u0157\u015A\u015B\u015E\u015F\u0164\u0165"
    U"\u0179\u017A\u017B\u017C\u02C7\u02D8\u02DB\u02DD\u0384\u0385\u0386\u0388\u0389\u038A\u038C\u038E\u038F\u0401"
    U"\u0402\u0403\u0404\u0405\u0406\u0407\u0408\u0409\u040A\u040B\u040C\u040E\u040F\u0451\u0452\u0453\u0454\u0455"
    U"\u0456\u0457\u0458\u0459\u045A\u045B\u045C\u045E\u045F\u0490\u0491\u2015\u2116";

bool is_among(char32_t code, std::u32string_view codes) { return codes.find(code) != codes.npos; }

// A space may stand for the byte A0.
bool may_continue(char32_t code) {
  if (code < 0x80) return code == ' ';
  if (code < 0xC0) return true;
  const auto byte = windows_1252_byte(code);
  return (byte && is_continuation(*byte)) || is_among(code, kOtherContinuations);
}

std::size_t shown_sequence_length(char32_t lead) {
  if (lead < 0xC2) return 1;
  if (lead <= 0xF0) return sequence_length(static_cast<std::uint8_t>(lead));
  if (is_among(lead, kOtherLeadsOfFour)) return 4;
  const bool is_greek_or_cyrillic_capital = (lead >= 0x392 && lead <= 0x3AF) || (lead >= 0x412 && lead <= 0x42F);
  if (is_greek_or_cyrillic_capital || is_among(lead, kOtherLeadsOfTwo)) return lead == 0x3A2 ? 1 : 2;
  const bool is_greek_or_cyrillic_small = (lead >= 0x3B0 && lead <= 0x3BF) || (lead >= 0x430 && lead <= 0x43F);
  return is_greek_or_cyrillic_small || is_among(lead, kOtherLeadsOfThree) ? 3 : 1;
}

}  // namespace

std::size_t shown_run(std::u32string_view text) {
  std::size_t end = 0;
  while (end < text.size()) {
    const std::size_t length = shown_sequence_length(text[end]);
    if (length == 1 || end + length > text.size()) break;
    if (!std::ranges::all_of(text.substr(end + 1, length - 1), may_continue)) break;
    end += length;
  }
  return end;
}

bool is_surely_continuation(char32_t code) {
  constexpr std::u32string_view kOften = U" \u201A\u201E\u2026\u2018\u2019\u201C\u201D\u2022\u2013\u2014\u2015";
  return may_continue(code) && !is_among(code, kOften);
}

}  // namespace teratron
