#include "corpus/clean/html_entities.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "base/ascii.h"
#include "base/utf8.h"
#include "corpus/clean/windows_1252.h"

namespace teratron {
namespace {

using EntityTable = std::unordered_map<std::string_view, std::u32string>;

std::string_view take_word(std::string_view& text) {
  const std::size_t end = text.find(' ');
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end + 1);
  return word;
}

EntityTable read_entity_table() {
  EntityTable table;
  for (std::string_view rest = kHtmlEntityTable; !rest.empty();) {
    std::u32string& codes = table[take_word(rest)];
    const std::string_view numbers = take_word(rest);
    for (const char* at = numbers.data(); at < numbers.data() + numbers.size(); ++at) {
      std::uint32_t code = 0;
      at = std::from_chars(at, numbers.data() + numbers.size(), code, 16).ptr;
      codes.push_back(code);
    }
  }
  return table;
}

const EntityTable& entity_table() {
  static const EntityTable table = read_entity_table();
  return table;
}

bool is_capital_or_digit(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

std::optional<std::u32string> named_entity(std::string_view name) {
  const EntityTable& table = entity_table();
  if (const auto found = table.find(name); found != table.end()) return found->second;
  // HTML has some names in capitals that need no semicolon, so a longer name may be one of them and text.
  constexpr std::array<std::string_view, 8> kAmbiguous = {"AMP", "COPY", "ETH", "GT", "LT", "QUOT", "REG", "THORN"};
  if (!std::ranges::all_of(name, is_capital_or_digit) ||
      std::ranges::any_of(kAmbiguous, [&](std::string_view one) { return name.starts_with(one); })) {
    return std::nullopt;
  }
  const auto found = table.find(ascii_lower(name));
  if (found == table.end()) return std::nullopt;
  std::u32string capitals;
  for (const char32_t code : found->second) {
    if (code == U'\u00DF') {
      capitals += U"SS";
    } else {
      capitals.push_back(static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code))));
    }
  }
  return capitals;
}

bool is_forbidden(std::uint32_t code) {  // in HTML
  return (code < 0x20 && code != '\t' && code != '\n' && code != '\f' && code != '\r') || code == 0x7F ||
         (code >= 0xFDD0 && code <= 0xFDEF) || (code & 0xFFFE) == 0xFFFE;
}

// "#233", "#xE9". Empty if the number is no character.
std::optional<std::u32string> numbered_entity(std::string_view name) {
  name.remove_prefix(1);
  const bool is_hexadecimal = name.starts_with('x') || name.starts_with('X');
  if (is_hexadecimal) name.remove_prefix(1);
  std::uint64_t code = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), code, is_hexadecimal ? 16 : 10);
  if (name.empty() || end != name.data() + name.size()) return std::nullopt;
  if (error != std::errc() || code > 0x10FFFF || code == 0 || (code >= 0xD800 && code < 0xE000)) return U"\uFFFD";
  if (code >= 0x80 && code < 0xA0) return std::u32string(1, windows_1252_character(static_cast<std::uint8_t>(code)));
  if (is_forbidden(static_cast<std::uint32_t>(code))) return U"";
  return std::u32string(1, static_cast<char32_t>(code));
}

bool is_entity_letter(char c) { return is_ascii_letter(c) || is_ascii_digit(c); }

// The name of a reference that begins at `at` (an ampersand): "eacute", "#233"; empty if there is none.
std::string_view entity_name(std::string_view text, std::size_t at) {
  constexpr std::size_t kLongest = 24;
  std::size_t end = at + 1;
  if (end < text.size() && text[end] == '#') ++end;
  const std::size_t letters = end;
  while (end < text.size() && end - letters < kLongest && is_entity_letter(text[end])) ++end;
  if (end == letters || end == text.size() || text[end] != ';') return {};
  return text.substr(at + 1, end - at - 1);
}

}  // namespace

std::string unescape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t copied = 0;
  for (std::size_t at = text.find('&'); at != text.npos; at = text.find('&', at + 1)) {
    const std::string_view name = entity_name(text, at);
    if (name.empty()) continue;
    const auto codes = name.starts_with('#') ? numbered_entity(name) : named_entity(name);
    if (!codes) continue;
    out += text.substr(copied, at - copied);
    for (const char32_t code : *codes) append_utf8(code, out);
    copied = at + name.size() + 2;
    at = copied - 1;
  }
  return out += text.substr(copied);
}

}  // namespace teratron
