#include "corpus/clean/text_repair.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "base/ascii.h"
#include "base/utf8.h"
#include "corpus/clean/html_entities.h"
#include "corpus/clean/mojibake.h"
#include "corpus/clean/windows_1252.h"
#include "tokenizer/unicode.h"

namespace teratron {
namespace {

struct Free {
  void operator()(utf8proc_uint8_t* text) const { std::free(text); }
};

std::string normalised(std::string_view text, int form) {
  utf8proc_uint8_t* out = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &out, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | form));
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(out);
  if (length < 0) throw std::bad_alloc();
  return {reinterpret_cast<const char*>(out), static_cast<std::size_t>(length)};
}

// The usual form of a full-width or half-width form, U+FF01 to U+FFEF; empty if the character stays.
constexpr char32_t kFirstWidthForm = 0xFF01, kLastWidthForm = 0xFFEF;
std::string_view usual_width(char32_t code) {
  static const std::vector<std::string> forms = [] {
    std::vector<std::string> made;
    for (char32_t one = kFirstWidthForm; one <= kLastWidthForm; ++one) {
      std::string text;
      append_utf8(one, text);
      const std::string usual = normalised(text, UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
      made.push_back(usual == text ? "" : usual);
    }
    return made;
  }();
  return forms[code - kFirstWidthForm];
}

std::string_view ligature_letters(char32_t code) {
  switch (code) {
    case 0x0132: return "IJ";
    case 0x0133: return "ij";
    case 0x0149: return "\u02BCn";
    case 0x01C4: return "D\u017D";
    case 0x01C5: return "D\u017E";
    case 0x01C6: return "d\u017E";
    case 0x01C7: return "LJ";
    case 0x01C8: return "Lj";
    case 0x01C9: return "lj";
    case 0x01CA: return "NJ";
    case 0x01CB: return "Nj";
    case 0x01CC: return "nj";
    case 0x01F1: return "DZ";
    case 0x01F2: return "Dz";
    case 0x01F3: return "dz";
    case 0xFB00: return "ff";
    case 0xFB01: return "fi";
    case 0xFB02: return "fl";
    case 0xFB03: return "ffi";
    case 0xFB04: return "ffl";
    case 0xFB05: return "\u017Ft";
    case 0xFB06: return "st";
    default: return {};
  }
}

bool is_needless_control(char32_t code) {
  return (code < 0x20 && code != '\t' && code != '\n' && code != '\f' && code != '\r') || code == 0x7F ||
         (code >= 0x206A && code <= 0x206F) || code == 0xFEFF || (code >= 0xFFF9 && code <= 0xFFFC);
}

void append_repaired(char32_t code, std::string& out) {
  if (code >= 0x80 && code < 0xA0) code = windows_1252_character(static_cast<std::uint8_t>(code));
  if (code == 0x02BC || (code >= 0x2018 && code <= 0x201B)) return out.push_back('\'');
  if (code >= 0x201C && code <= 0x201F) return out.push_back('"');
  if (code == 0x2028 || code == 0x2029) return out.push_back('\n');
  if (code == 0x3000) return out.push_back(' ');
  if (is_needless_control(code)) return;
  std::string_view instead = ligature_letters(code);
  if (instead.empty() && code >= kFirstWidthForm && code <= kLastWidthForm) instead = usual_width(code);
  if (instead.empty()) return append_utf8(code, out);
  out += instead;
}

// Length of a terminal's escape sequence at the beginning of `text` (ESC [ digits and semicolons, a letter), or 0.
std::size_t terminal_escape(std::string_view text) {
  if (!text.starts_with("\x1B[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end != text.npos && is_ascii_letter(text[end]) ? end + 1 : 0;
}

// Characters that are their own composed form and compose with no other.
bool is_always_composed(char32_t code) {
  static constexpr std::array<CodeRange, 9> kRanges = {{{0, 0x2FF},
                                                        {0x400, 0x482},
                                                        {0x2010, 0x2027},
                                                        {0x2030, 0x205E},
                                                        {0x20A0, 0x20C0},
                                                        {0x3041, 0x3096},
                                                        {0x30A1, 0x30FA},
                                                        {0x4E00, 0x9FFF},
                                                        {0xAC00, 0xD7A3}}};
  return is_within(kRanges, code);
}

// Whether a quick look at the bytes shows that normalisation changes nothing.
bool is_composed(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    if (!is_always_composed(step.code)) return false;
    text.remove_prefix(step.length);
  }
  return true;
}

std::string repair_characters(std::string_view line) {
  std::string out;
  out.reserve(line.size());
  while (!line.empty()) {
    const Utf8Step step = decode_utf8(line);
    std::size_t length = step.length;
    if (step.code == '\r') {
      length = line.starts_with("\r\n") ? 2 : 1;
      out.push_back('\n');
    } else if (const std::size_t escape = terminal_escape(line); escape > 0) {
      length = escape;
    } else {
      append_repaired(step.code, out);
    }
    line.remove_prefix(length);
  }
  return is_composed(out) ? out : normalised(out, UTF8PROC_COMPOSE);
}

// Text that needs no repair: printable ASCII without an ampersand.
bool is_plain(std::string_view line) {
  return std::ranges::all_of(line, [](char c) {
    return (static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7F && c != '&') || c == '\n' ||
           c == '\t';
  });
}

std::string repair_line(std::string_view line, bool is_markup) {
  constexpr int kMostRounds = 32;  // each undoes one garbling
  std::string text(line);
  for (int round = 0; round < kMostRounds; ++round) {
    std::string repaired = is_markup || text.find('&') == text.npos ? text : unescape_html(text);
    repaired = repair_characters(mend_mojibake(repaired));
    if (repaired == text) break;
    text = std::move(repaired);
  }
  return text;
}

bool ends_with_letter_or_number(std::string_view text) {
  if (text.empty()) return false;
  const CharClass kind = class_of(decode_utf8(text.substr(last_character(text))).code);
  return kind == CharClass::kLetter || kind == CharClass::kNumber;
}

bool begins_with_small_letter(std::string_view text) {
  if (text.empty()) return false;
  const auto code = static_cast<utf8proc_int32_t>(decode_utf8(text).code);
  return utf8proc_category(code) == UTF8PROC_CATEGORY_LL;
}

}  // namespace

std::string repair_text(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  bool is_markup = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t newline = text.find('\n', begin);
    const std::size_t end = newline == text.npos ? text.size() : newline + 1;
    const std::string_view line = text.substr(begin, end - begin);
    is_markup = is_markup || line.find('<') != line.npos;
    if (is_plain(line)) {
      out += line;
    } else {
      out += repair_line(line, is_markup);
    }
    begin = end;
  }
  return out;
}

std::string remove_needless_newlines(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\f\n\r";
  std::string out;
  out.reserve(text.size());
  const std::size_t last = text.find_last_not_of(kSpaces);
  if (last == text.npos) return out;
  text = text.substr(0, last + 1);
  text.remove_prefix(text.find_last_of("\n\r\f", text.find_first_not_of(kSpaces)) + 1);  // 0: no line comes before
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    out += line.substr(0, line.find_last_not_of(kSpaces) + 1);
    if (newline == text.npos) break;
    // The lines up to the next one with content.
    const std::size_t next = text.find_first_not_of(kSpaces, newline);
    const std::size_t next_begin = text.rfind('\n', next) + 1;
    const bool is_single = text.substr(newline, next_begin - newline).find('\n', 1) == std::string_view::npos;
    const bool is_inside = ends_with_letter_or_number(out) || out.ends_with(',');
    if (is_single && is_inside && next == next_begin && begins_with_small_letter(text.substr(next))) {
      out.push_back(' ');
    } else {
      out += is_single ? "\n" : "\n\n";
    }
    text.remove_prefix(next_begin);
  }
  return out;
}

}  // namespace teratron
