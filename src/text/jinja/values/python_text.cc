#include "jinja/values/python_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/ascii.h"
#include "base/utf8.h"
#include "jinja/values/byte_budget.h"
#include "jinja/values/value.h"

namespace teratron::jinja {
namespace {

utf8proc_category_t category(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

// str.isprintable()
bool is_printable(char32_t code) {
  switch (category(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_ZS: return code == ' ';
    default: return true;
  }
}

bool is_cased(char32_t code) {
  const utf8proc_category_t kind = category(code);
  return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL || kind == UTF8PROC_CATEGORY_LT;
}

void add_piece(std::string_view piece, Pieces& pieces) {
  require_elements(pieces.size() + 1);
  pieces.push_back(piece);
}

enum class Case { kUpper, kLower, kTitle };

// Whether a character's case is several characters, or depends on its neighbours (Unicode's SpecialCasing.txt).
bool has_special_case(char32_t code, Case to) {
  if (to == Case::kLower) return code == 0x130 || code == 0x3A3;
  constexpr std::array kSingle = {0xDF, 0x149, 0x1F0, 0x390, 0x3B0, 0x587};
  return std::ranges::find(kSingle, static_cast<int>(code)) != kSingle.end() || (code >= 0x1E96 && code <= 0x1E9A) ||
         (code >= 0x1F50 && code <= 0x1FFC) || (code >= 0xFB00 && code <= 0xFB17);
}

void append_cased(char32_t code, Case to, std::string& out) {
  if (has_special_case(code, to)) {
    std::string character;
    append_utf8(code, character);
    fail("the case of '{}' is several characters, or depends on those around it, which is not supported", character);
  }
  const auto point = static_cast<utf8proc_int32_t>(code);
  append_utf8(static_cast<char32_t>(to == Case::kUpper   ? utf8proc_toupper(point)
                                    : to == Case::kLower ? utf8proc_tolower(point)
                                                         : utf8proc_totitle(point)),
              out);
}

template <typename ToCase>
std::string cased(std::string_view text, ToCase to) {
  std::string out;
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    append_cased(step.code, to(step.code), out);
    text.remove_prefix(step.length);
  }
  return out;
}

bool is_line_end(char32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

Pieces split_at_white(std::string_view text, std::int64_t most) {
  Pieces pieces;
  while (true) {
    text = stripped(text, std::nullopt, true, false);
    if (text.empty()) return pieces;
    if (most >= 0 && std::ssize(pieces) == most) {
      add_piece(text, pieces);  // with the white space at its end
      return pieces;
    }
    std::size_t end = 0;
    while (end < text.size()) {
      const Utf8Step step = decode_utf8(text.substr(end));
      if (is_white_space(step.code)) break;
      end += step.length;
    }
    add_piece(text.substr(0, end), pieces);
    text.remove_prefix(end);
  }
}

}  // namespace

std::size_t find_first(std::string_view text, std::string_view sub) {
  if (sub.empty()) return 0;
  if (sub.size() > text.size()) return std::string_view::npos;
  // std::string_view::find() takes the product of both lengths.
  const auto* const found = static_cast<const char*>(memmem(text.data(), text.size(), sub.data(), sub.size()));
  if (found == nullptr) {
    spend(text.size());
    return std::string_view::npos;
  }
  const auto at = static_cast<std::size_t>(found - text.data());
  spend(at + sub.size());
  return at;
}

std::size_t find_last(std::string_view text, std::string_view sub) {
  constexpr std::size_t kShort = 256;  // for these the product of both lengths is small enough
  std::size_t at = std::string_view::npos;
  if (sub.size() <= kShort) {
    at = text.rfind(sub);
    spend(at == std::string_view::npos ? text.size() : text.size() - at);
  } else {
    const std::string backward(text.rbegin(), text.rend()), sub_backward(sub.rbegin(), sub.rend());
    spend(text.size());
    at = find_first(backward, sub_backward);
    if (at != std::string_view::npos) at = text.size() - at - sub.size();
  }
  return at;
}

bool stands_in_name(char32_t code, bool first) {
  switch (category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL: return true;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC: return !first || code == '_';
    default: return false;
  }
}

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view stripped(std::string_view text, std::optional<std::string_view> characters, bool left, bool right) {
  const auto goes = [&](std::string_view character) {
    spend(character.size());
    return characters ? find_first(*characters, character) != std::string_view::npos
                      : is_white_space(decode_utf8(character).code);
  };
  while (left && !text.empty()) {
    const std::string_view first = text.substr(0, decode_utf8(text).length);
    if (!goes(first)) break;
    text.remove_prefix(first.size());
  }
  while (right && !text.empty()) {
    const std::size_t begin = last_character(text);
    if (!goes(text.substr(begin))) break;
    text = text.substr(0, begin);
  }
  return text;
}

Pieces split(std::string_view text, std::optional<std::string_view> separator, std::int64_t most, bool from_right) {
  if (!separator) {
    if (from_right && most >= 0) fail("rsplit() at white space, a number of times, is not supported");
    return split_at_white(text, most);
  }
  if (separator->empty()) fail("empty separator");
  Pieces pieces;
  const auto is_enough = [&] { return most >= 0 && std::ssize(pieces) == most; };
  while (!is_enough()) {
    const std::size_t at = from_right ? find_last(text, *separator) : find_first(text, *separator);
    if (at == std::string_view::npos) break;
    const std::string_view before = text.substr(0, at), after = text.substr(at + separator->size());
    add_piece(from_right ? after : before, pieces);
    text = from_right ? before : after;
  }
  add_piece(text, pieces);
  if (from_right) std::ranges::reverse(pieces);
  return pieces;
}

std::string_view take_line(std::string_view& text, bool keep_end) {
  const std::string_view all = text;
  std::size_t end = 0, next = 0;
  while (next == end && end < all.size()) {
    const Utf8Step step = decode_utf8(all.substr(end));
    next = end + step.length;
    if (!is_line_end(step.code)) {
      end = next;
    } else if (step.code == '\r' && all.substr(next).starts_with('\n')) {
      ++next;
    }
  }
  text = all.substr(next);
  return all.substr(0, keep_end ? next : end);
}

Pieces split_lines(std::string_view text, bool keep_ends) {
  Pieces lines;
  while (!text.empty()) add_piece(take_line(text, keep_ends), lines);
  return lines;
}

std::string replaced(std::string_view text, std::string_view old, std::string_view with, std::int64_t count) {
  std::string out;
  if (old.empty()) {  // between all characters, and at both ends
    for (std::int64_t i = 0;; ++i) {
      if (count < 0 || i < count) append(out, with);
      if (text.empty()) return out;
      const std::size_t length = decode_utf8(text).length;
      append(out, text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  for (; count != 0; --count) {
    const std::size_t at = find_first(text, old);
    if (at == std::string_view::npos) break;
    append(out, text.substr(0, at));
    append(out, with);
    text.remove_prefix(at + old.size());
  }
  append(out, text);
  return out;
}

std::string upper(std::string_view text) {
  return cased(text, [](char32_t) { return Case::kUpper; });
}

std::string lower(std::string_view text) {
  return cased(text, [](char32_t) { return Case::kLower; });
}

std::string capitalized(std::string_view text) {
  return cased(text,
               [first = true](char32_t) mutable { return std::exchange(first, false) ? Case::kTitle : Case::kLower; });
}

std::string title(std::string_view text) {
  return cased(text, [after_letter = false](char32_t code) mutable {
    return std::exchange(after_letter, is_cased(code)) ? Case::kLower : Case::kTitle;
  });
}

std::string repr_of_text(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos,
             has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    const char32_t code = step.code;
    if (code == static_cast<unsigned char>(quote) || code == '\\') {
      (out += '\\') += static_cast<char>(code);
    } else if (code == '\n' || code == '\r' || code == '\t') {
      (out += '\\') += code == '\n' ? 'n' : code == '\r' ? 'r' : 't';
    } else if (is_printable(code)) {
      out += text.substr(0, step.length);
    } else {
      const auto number = static_cast<std::uint32_t>(code);
      out += code < 0x100     ? fmt::format("\\x{:02x}", number)
             : code < 0x10000 ? fmt::format("\\u{:04x}", number)
                              : fmt::format("\\U{:08x}", number);
    }
    text.remove_prefix(step.length);
  }
  return out += quote;
}

namespace {

// A number without what Python takes and std::from_chars does not: white space around, a plus sign, and underscores
// between digits.
std::string plain_number(std::string_view text) {
  text = stripped(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  spend(text.size());
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_between = i > 0 && i + 1 < text.size() && is_ascii_digit(text[i - 1]) && is_ascii_digit(text[i + 1]);
    if (text[i] != '_' || !is_between) plain += text[i];
  }
  return plain;
}

}  // namespace

std::optional<std::int64_t> integer_of(std::string_view text) {
  const std::string plain = plain_number(text);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), number);
  if (error == std::errc::invalid_argument || end != plain.data() + plain.size()) return std::nullopt;
  if (error != std::errc()) fail("the number {} is above 2^63", plain);
  return number;
}

std::optional<double> real_of(std::string_view text) {
  const std::string plain = plain_number(text);
  double number = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), number);
  if (error == std::errc::invalid_argument || end != plain.data() + plain.size()) return std::nullopt;
  if (plain.ends_with(')')) return std::nullopt;  // nan(1), which is C's
  // Beyond the range of a double std::from_chars gives no value; strtod gives infinity or 0.
  return error == std::errc() ? number : std::strtod(plain.c_str(), nullptr);
}

std::string written(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  if (number == 0) return std::signbit(number) ? "-0.0" : "0.0";
  const double size = std::abs(number);
  const bool plain = size >= 1e-4 && size < 1e16;
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), number,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(digits.begin(), end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace teratron::jinja
