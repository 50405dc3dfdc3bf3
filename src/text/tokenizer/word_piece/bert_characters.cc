#include "tokenizer/word_piece/bert_characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "tokenizer/unicode.h"

namespace teratron::bert {
namespace {

// Marks, punctuation, format characters and decompositions younger than Unicode 8, which Hugging Face treats as
// ordinary characters. Other characters inside a range are younger, too, or ordinary anyway.
constexpr CodeRange kYounger[] = {
    {0x61D, 0x61D},     {0x7FD, 0x7FD},     {0x890, 0x8E2},     {0x9FD, 0x9FE},     {0xA76, 0xA76},
    {0xAFA, 0xAFF},     {0xB55, 0xB55},     {0xC04, 0xC3C},     {0xC77, 0xC77},     {0xC84, 0xC84},
    {0xD00, 0xD00},     {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},
    {0x1715, 0x1715},   {0x180F, 0x1886},   {0x1ABF, 0x1AEB},   {0x1B4E, 0x1B4F},   {0x1B7D, 0x1B7F},
    {0x1DF6, 0x1DFB},   {0x2E43, 0x2E5D},   {0xA82C, 0xA82C},   {0xA8C5, 0xA8C5},   {0xA8FF, 0xA8FF},
    {0xA9BD, 0xA9BD},   {0x105C9, 0x105E4}, {0x10D24, 0x10F89}, {0x11070, 0x11074}, {0x110C2, 0x110CD},
    {0x111CF, 0x111CF}, {0x1123E, 0x11241}, {0x1133B, 0x1133B}, {0x11383, 0x1145E}, {0x11660, 0x1166C},
    {0x116B9, 0x116B9}, {0x1182F, 0x11FFF}, {0x12FF1, 0x1612F}, {0x16D68, 0x16F4F}, {0x16FE2, 0x16FF1},
    {0x1CF00, 0x1CF46}, {0x1E000, 0x1E6F5}, {0x1E944, 0x1E95F}};

// Ranges that Unicode 9 introduced: Hugging Face knows their order among marks, not their category.
constexpr CodeRange kYoungerButOrdered[] = {{0x8D4, 0x8E1},     {0x1DFB, 0x1DFB},   {0x11442, 0x11442},
                                            {0x11446, 0x11446}, {0x11C3F, 0x11C3F}, {0x1E000, 0x1E02A},
                                            {0x1E944, 0x1E94A}};

// Lower case that utf8proc 2.8 lacks.
struct Lower {
  char32_t first, last, lower_of_first;
};
constexpr Lower kYoungerLower[] = {{0x1C89, 0x1C89, 0x1C8A},   {0xA7CB, 0xA7CB, 0x264},  {0xA7CC, 0xA7CC, 0xA7CD},
                                   {0xA7CE, 0xA7CE, 0xA7CF},   {0xA7D2, 0xA7D2, 0xA7D3}, {0xA7D4, 0xA7D4, 0xA7D5},
                                   {0xA7DA, 0xA7DA, 0xA7DB},   {0xA7DC, 0xA7DC, 0x19B},  {0x10D50, 0x10D65, 0x10D70},
                                   {0x16EA0, 0x16EB8, 0x16EBB}};

// The range that holds `code`, or null.
template <class T, std::size_t kSize>
const T* find_in(const T (&ranges)[kSize], char32_t code) {
  const T* after = std::ranges::upper_bound(ranges, code, {}, &T::first);
  return after == ranges || std::prev(after)->last < code ? nullptr : std::prev(after);
}

bool is_younger(char32_t code) { return find_in(kYounger, code) != nullptr; }

utf8proc_category_t category_of(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

}  // namespace

Cleaned clean(char32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return Cleaned::kSpace;
  if (code == 0xFFFD) return Cleaned::kDropped;
  switch (category_of(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CO: return Cleaned::kDropped;
    case UTF8PROC_CATEGORY_CF: return is_younger(code) ? Cleaned::kKept : Cleaned::kDropped;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return Cleaned::kSpace;
    default: return Cleaned::kKept;
  }
}

bool is_ideograph(char32_t code) {
  constexpr CodeRange kBlocks[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},  {0x20000, 0x2A6DF},
                                   {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return code >= kBlocks[0].first && is_within(kBlocks, code);
}

bool is_punctuation(char32_t code) {
  if (code < 0x80) {
    return (code > ' ' && code < '0') || (code > '9' && code < 'A') || (code > 'Z' && code < 'a') ||
           (code > 'z' && code < 0x7F);
  }
  switch (category_of(code)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return !is_younger(code);
    default: return code == 0x166D || code == 0x111C9;  // a symbol and a mark, since Unicode 12 and 11
  }
}

bool is_nonspacing_mark(char32_t code) {
  if (code < 0x300) return false;
  if (category_of(code) == UTF8PROC_CATEGORY_MN) return code != 0x111C9 && !is_younger(code);
  return code == 0x1734 || code == 0x1171E;  // spacing ones since Unicode 14 and 16
}

Several decompose(char32_t code) {
  Several several;
  if (code >= 0xC0) {
    std::array<utf8proc_int32_t, std::tuple_size_v<decltype(several.codes)>> parts{};
    const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts.data(),
                                                           parts.size(), UTF8PROC_DECOMPOSE, nullptr);
    if (count > 1 || (count == 1 && static_cast<char32_t>(parts[0]) != code)) {
      if (!is_younger(code)) {
        several.count = static_cast<std::size_t>(count);
        for (std::size_t i = 0; i < several.count; ++i) several.codes[i] = static_cast<char32_t>(parts[i]);
        return several;
      }
    }
  }
  several.codes[0] = code;
  several.count = 1;
  return several;
}

int combining_class(char32_t code) {
  if (code < 0x300) return 0;
  const int known = utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->combining_class;
  if (known == 0 || !is_younger(code)) return known;
  return find_in(kYoungerButOrdered, code) != nullptr ? known : 0;
}

Several to_lower(char32_t code) {
  Several several;
  several.count = 1;
  if (code == 0x130) {
    several.codes = {'i', 0x307};
    several.count = 2;
  } else if (const Lower* younger = find_in(kYoungerLower, code)) {
    several.codes[0] = younger->lower_of_first + (code - younger->first);
  } else {
    several.codes[0] = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
  }
  return several;
}

}  // namespace teratron::bert
