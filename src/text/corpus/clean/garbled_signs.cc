#include "corpus/clean/garbled_signs.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "corpus/clean/windows_1252.h"
#include "tokenizer/unicode.h"

namespace teratron {
namespace {

// Classes of characters; a character may be in several.
enum SignClass : std::uint16_t {
  kNoSign = 0,
  kControl = 1 << 0,
  kBad = 1 << 1,  // seldom written
  kLaw = 1 << 2,
  kCurrency = 1 << 3,
  kOpening = 1 << 4,  // opening punctuation
  kClosing = 1 << 5,
  kNumeric = 1 << 6,
  kCapital = 1 << 7,  // accented; without those used in drawn faces (Ò, Ö, Ù)
  kSmall = 1 << 8,
  kArabicSecond = 1 << 9,  // follows the Arabic lead bytes D8 and D9: common signs, which count there alone
  kPairSecond = 1 << 10,   // after the lead bytes C2, C3, CE and D0, beside punctuation
};
using Classes = std::uint16_t;

struct Members {
  std::u32string_view characters;
  Classes classes;
};

constexpr Members kMembers[] = {
    {U"\u0192\u02C6\u02DC\u2020\u2021\u2030\u00A4\u00A6\u00A8\u00AA\u00AC\u00AF\u00B8\u00BA\uFFFD", kBad},
    {U"\u00A7\u00B6", kLaw},
    {U"\u20AC\u00A2\u00A3\u00A5", kCurrency},
    {U"\u201A\u201E\u2039\u2018\u201C\u2022\u00A1\u00A9\u00AB\u00BF", kOpening},
    {U"\u201D\u2122\u203A\u00AE\u00BB", kClosing},
    {U"\u00B1\u00B2\u00B3\u00B5\u00B9\u00BC\u00BD\u00BE\u00D7\u00F7", kNumeric},
    {U"\u00D8\u00DC\u00DD\u0100\u0102\u0104\u0106\u010C\u010E\u0110\u0112\u0116\u0118\u011A\u011E\u0122\u012A\u0130"
     U"\u0136"
     U"\u0139\u013B\u013D\u0141\u0143\u0145\u0147\u0152\u0158\u015A\u015E\u0160\u0162\u0164\u016E\u0170\u0178\u0179"
     U"\u017B"
     U"\u017D",
     kCapital},  // and U+00C0 to U+00D1
    {U"\u00DF\u00FC\u0101\u0103\u0105\u0107\u010D\u010F\u0111\u0113\u0117\u0119\u011B\u011F\u0123\u012B\u012F\u0137"
     U"\u013A"
     U"\u013C\u013E\u0142\u0153\u0155\u015B\u015F\u0161\u0165\u017A\u017C\u017E",
     kSmall},  // and U+00E0 to U+00F1
    {U"\u00A0\u00AD\u00B7\u00B4\u2013\u2014\u2026\u2019\u0178\u0160\u00AE\u00B0\u00B5\u00BB", kArabicSecond},
    {U"\u20AC\u0153\u0160\u0161\u00A2\u00A3\u0178\u017E\u00A0\u00AD\u00AE\u00A9\u00B0\u00B7\u00BB\u2013\u2014\u00B4",
     kPairSecond}};

constexpr Classes listed_classes(char32_t code) {
  Classes classes = kNoSign;
  for (const Members& members : kMembers) {
    if (members.characters.find(code) != members.characters.npos) classes |= members.classes;
  }
  if (code >= 0x80 && code < 0xA0) classes |= kControl;
  if (code >= 0xC0 && code <= 0xD1) classes |= kCapital;
  if (code >= 0xE0 && code <= 0xF1) classes |= kSmall;
  return classes;
}

constexpr std::array<Classes, 256> kLatin1Classes = [] {
  std::array<Classes, 256> classes{};
  for (char32_t code = 0; code < classes.size(); ++code) classes[code] = listed_classes(code);
  return classes;
}();

Classes classes_of(char32_t code) {
  if (code < kLatin1Classes.size()) return kLatin1Classes[code];
  const bool may_be_listed = code < 0x2DD || (code >= 0x2013 && code <= 0x2122) || code == 0xFFFD;
  return may_be_listed ? listed_classes(code) : Classes{kNoSign};
}

bool is_small_ascii(char32_t code) { return code >= 'a' && code <= 'z'; }
bool is_letter_ascii(char32_t code) { return is_small_ascii(code | 0x20U) && code < 0x80; }
bool is_space(char32_t code) { return class_of(code) == CharClass::kSpace || (code >= 0x1C && code <= 0x1F); }
bool is_of_word(char32_t code) {
  return class_of(code) == CharClass::kLetter || class_of(code) == CharClass::kNumber || code == '_';
}
bool is_one_of(char32_t code, std::u32string_view codes) { return code != 0 && codes.find(code) != codes.npos; }

// Letters that begin no garbled sequence of these encodings. Beside one, a sequence is surer.
bool is_small_greek_or_cyrillic(char32_t code) {
  return (code >= 0x3B0 && code <= 0x3C9) || is_one_of(code, U"\u03AC\u03AD\u03AF") || (code >= 0x430 && code <= 0x45F);
}
bool is_capital_greek_or_cyrillic(char32_t code) {
  return (code >= 0x386 && code <= 0x3AB) || (code >= 0x401 && code <= 0x42F);
}

// Indexes the characters of a line. Beyond its ends are characters 0, which are in no class.
class Window {
 public:
  Window(std::u32string_view text, std::size_t at) : text_(text), at_(at) {}

  char32_t code(std::ptrdiff_t offset) const {
    const std::size_t at = at_ + static_cast<std::size_t>(offset);  // underflow is beyond the end, too
    return at < text_.size() ? text_[at] : 0;
  }
  bool is_at_begin() const { return at_ == 0; }
  bool has(std::ptrdiff_t offset) const { return at_ + static_cast<std::size_t>(offset) < text_.size(); }
  bool is(std::ptrdiff_t offset, int classes) const { return (classes_of(code(offset)) & classes) != 0; }

 private:
  std::u32string_view text_;
  std::size_t at_;
};

// Two signs of which at least one is seldom written, or which are not written in this order.
bool is_unlikely_pair(const Window& w) {
  constexpr int kAccented = kSmall | kCapital;
  constexpr int kSign = kAccented | kOpening | kClosing | kCurrency | kNumeric | kLaw;
  return (w.is(0, kSign | kBad) && w.is(1, kBad)) || (w.is(0, kBad) && w.is(1, kSign)) ||
         ((w.is(0, kSmall | kClosing | kCurrency | kNumeric) || is_small_greek_or_cyrillic(w.code(0))) &&
          w.is(1, kCapital)) ||
         (w.is(0, kClosing | kCurrency | kNumeric) && w.is(1, kSmall)) ||
         (w.is(0, kSmall | kClosing) && w.is(1, kCurrency)) || (w.is(0, kCapital) && w.is(1, kNumeric | kLaw)) ||
         (w.is(0, kCurrency | kNumeric) && w.is(1, kOpening));
}

// Two signs that are unlikely beside their neighbours.
bool is_unlikely_among_others(const Window& w) {
  constexpr int kAccented = kSmall | kCapital;
  const bool is_letter_of_other_words =
      w.code(1) == 0xDE || is_small_greek_or_cyrillic(w.code(1)) || is_capital_greek_or_cyrillic(w.code(1));
  return (is_letter_ascii(w.code(0)) && is_letter_of_other_words && w.is(2, kBad)) ||
         (is_space(w.code(0)) && w.is(1, kCapital) && w.is(2, kCurrency)) ||
         (is_small_ascii(w.code(0)) && w.is(1, kCapital) && w.is(2, kOpening | kCurrency)) ||
         (w.is(0, kAccented | kCurrency | kClosing) && w.is(1, kOpening) && w.is(2, kNumeric)) ||
         (w.is(0, kAccented | kCurrency | kNumeric | kLaw) && w.is(1, kClosing) && w.is(2, kOpening)) ||
         (w.is(0, kAccented) && w.is(1, kOpening | kClosing) && is_of_word(w.code(2)));
}

// Lead bytes of UTF-8 as characters, before their usual continuations.
bool is_lead_and_continuation(const Window& w) {
  const auto is_arabic = [&](std::ptrdiff_t at) {
    return is_one_of(w.code(at), U"\u00D8\u00D9") &&
           w.is(at + 1, kArabicSecond | kCurrency | kBad | kNumeric | kOpening);
  };
  switch (w.code(0)) {
    case 0xC2:
    case 0xC3:
    case 0xCE:
    case 0xD0:
      if (w.is(1, kPairSecond | kOpening | kClosing)) return true;
      break;
    case 0xD7: return is_one_of(w.code(1), U"\u00B2\u00B3");
    case 0xD8:
    case 0xD9:
      if (is_arabic(0) && is_arabic(2)) return true;
      break;
    case 0xE0: return is_one_of(w.code(1), U"\u00B2\u00B5\u00B9\u00BC\u00BD\u00BE");
    case 0x152:
    case 0x153: return w.has(1) && !is_letter_ascii(w.code(1));
    case 0x201A:  // MacRoman's
      return (w.code(1) == 0xC4 && is_one_of(w.code(2),
                                             U"\u00EC\u00EE\u00EF\u00F2\u00F4\u00FA\u00F9\u00FB\u2020\u00B0"
                                             U"\u00A2")) ||
             (is_one_of(w.code(1), U"\u00E2\u00F3") && is_one_of(w.code(2), U"\u00E0\u00E4\u00B0\u00EA"));
    default: break;
  }
  return w.is(0, kCapital) && w.code(1) == 0xB0;
}

// "Ã" and "Â" before a space that was U+00A0 or stands for it.
bool is_lead_and_space(const Window& w) {
  if (!is_one_of(w.code(0), U"\u00C2\u00C3")) return false;
  const char32_t before = w.code(-1);
  if (w.code(1) == ' ') {
    if (w.is_at_begin() || is_small_ascii(before) || (is_space(before) && is_small_ascii(w.code(-2)))) return true;
  }
  return w.code(0) == 0xC2 && (w.code(1) == ' ' || w.is(1, kOpening | kClosing)) &&
         (is_small_ascii(before) || is_one_of(before, U".,?!") || w.is(-1, kClosing));
}

bool is_garbled_from(std::u32string_view text, std::size_t at) {
  const Window w(text, at);
  return w.is(0, kControl) || is_unlikely_pair(w) || is_unlikely_among_others(w) || is_lead_and_continuation(w) ||
         is_lead_and_space(w);
}

}  // namespace

bool looks_garbled(std::u32string_view text) {
  std::size_t next = 0;  // not examined yet
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (classes_of(text[at]) == kNoSign) continue;
    // Each run that counts has such a character among its first three.
    for (next = std::max(next, at - std::min<std::size_t>(at, 2)); next <= at; ++next) {
      if (is_garbled_from(text, next)) return true;
    }
  }
  return false;
}

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
