#include "tokenizer/bpe/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "tokenizer/word_piece/bert_characters.h"

namespace teratron {
namespace {

// Hangul syllables are composed by arithmetic (Unicode 16, section 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

bool is_syllable(char32_t code) { return code >= kSyllables && code < kSyllables + kSyllableCount; }
bool is_vowel(char32_t code) { return code >= kVowels && code < kVowels + kVowelCount; }
bool is_tail(char32_t code) { return code > kTails && code < kTails + kTailCount; }

std::uint64_t key_of(char32_t first, char32_t second) { return std::uint64_t{first} << 32 | second; }

// Whether utf8proc composes the parts to `code` again: some characters are excluded.
bool is_composed_again(char32_t code, const bert::Several& parts) {
  std::array<utf8proc_int32_t, 5> buffer{};
  std::ranges::transform(parts, buffer.begin(), [](char32_t part) { return static_cast<utf8proc_int32_t>(part); });
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(buffer.data(), static_cast<utf8proc_ssize_t>(parts.count),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  return count == 1 && static_cast<char32_t>(buffer[0]) == code;
}

}  // namespace

const Nfc& Nfc::instance() {
  static const Nfc tables;
  return tables;
}

Nfc::Nfc() : unstable_(kEnd / 64) {
  const auto mark = [&](char32_t code) { unstable_[code / 64] |= std::uint64_t{1} << (code % 64); };
  std::array<std::vector<char32_t>, 5> by_parts;  // shorter decompositions compose the beginnings of longer ones
  for (char32_t code = 0xC0; code < kEnd; ++code) {
    if (is_syllable(code)) continue;
    if (is_vowel(code) || is_tail(code) || bert::combining_class(code) != 0) mark(code);
    const bert::Several parts = bert::decompose(code);
    if (parts.codes[0] == code) continue;
    if (parts.count > 1 && is_composed_again(code, parts)) {
      by_parts[parts.count].push_back(code);
    } else {
      mark(code);
    }
  }
  for (const auto& codes : by_parts) {
    for (const char32_t code : codes) add_composition(code);
  }
  for (const auto& [pair, code] : composed_) mark(static_cast<char32_t>(pair & 0xFFFFFFFF));
}

void Nfc::add_composition(char32_t code) {
  const bert::Several parts = bert::decompose(code);
  char32_t first = parts.codes[0];
  for (std::size_t i = 1; i + 1 < parts.count; ++i) first = compose(first, parts.codes[i]);
  composed_[key_of(first, parts.codes[parts.count - 1])] = code;
}

char32_t Nfc::compose(char32_t first, char32_t second) const {
  if (is_vowel(second) && first >= kLeads && first < kLeads + kLeadCount) {
    return kSyllables + ((first - kLeads) * kVowelCount + (second - kVowels)) * kTailCount;
  }
  if (is_tail(second) && is_syllable(first) && (first - kSyllables) % kTailCount == 0) return first + second - kTails;
  const auto found = composed_.find(key_of(first, second));
  return found == composed_.end() ? 0 : found->second;
}

// Decomposes and sorts runs of marks by class.
std::u32string Nfc::decompose(std::u32string_view characters) const {
  std::u32string parts;
  for (const char32_t code : characters) {
    for (const char32_t part : bert::decompose(code)) parts.push_back(part);
  }
  for (auto begin = parts.begin(); begin != parts.end();) {
    const auto end = std::find_if(begin, parts.end(), [](char32_t c) { return bert::combining_class(c) == 0; });
    std::stable_sort(begin, end,
                     [](char32_t a, char32_t b) { return bert::combining_class(a) < bert::combining_class(b); });
    begin = end == parts.end() ? end : end + 1;
  }
  return parts;
}

// Composes each character with the last starter, unless one between them has as high a class.
void Nfc::append(std::u32string_view characters, std::string& out) const {
  const std::u32string parts = decompose(characters);
  std::u32string composed;
  std::size_t starter = parts.size();  // its index in `composed`; none yet
  int last_class = 0;                  // of the last character kept after the starter
  for (const char32_t code : parts) {
    const int own_class = bert::combining_class(code);
    if (starter < composed.size()) {
      const bool is_next = starter + 1 == composed.size();
      const char32_t whole = is_next || last_class < own_class ? compose(composed[starter], code) : 0;
      if (whole != 0) {
        composed[starter] = whole;
        continue;
      }
    }
    if (own_class == 0) starter = composed.size();
    last_class = own_class;
    composed.push_back(code);
  }
  for (const char32_t code : composed) append_utf8(code, out);
}

}  // namespace teratron
