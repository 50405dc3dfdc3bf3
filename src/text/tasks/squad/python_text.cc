#include "tasks/squad/python_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <ranges>

#include "tokenizer/unicode.h"
#include "tokenizer/word_piece/bert_characters.h"

namespace teratron::squad {
namespace {

utf8proc_category_t category(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

// Unicode's Case_Ignorable: what does not end the search for a cased letter.
bool is_case_ignorable(char32_t code) {
  // Word_Break = MidLetter, MidNumLet or Single_Quote.
  constexpr std::u32string_view kWithinWords =
      U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
  switch (category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return kWithinWords.find(code) != kWithinWords.npos;
  }
}

// Unicode's Cased, of what is not ignorable.
bool is_cased(char32_t code) {
  switch (category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT: return true;
    default: break;
  }
  // Ordinals, Roman numerals, letters in circles and squares.
  return code == 0xAA || code == 0xBA || (code >= 0x2160 && code <= 0x217F) || (code >= 0x24B6 && code <= 0x24E9) ||
         (code >= 0x1F130 && code <= 0x1F149) || (code >= 0x1F150 && code <= 0x1F169) ||
         (code >= 0x1F170 && code <= 0x1F189);
}

// Whether the first of `letters` that counts is cased.
template <class Letters>
bool begins_cased(const Letters& letters) {
  const auto found = std::ranges::find_if_not(letters, is_case_ignorable);
  return found != std::ranges::end(letters) && is_cased(*found);
}

}  // namespace

std::u32string python_lower(std::u32string_view text) {
  constexpr char32_t kCapitalSigma = 0x3A3, kFinalSigma = 0x3C2;
  std::u32string lower;
  lower.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == kCapitalSigma && begins_cased(text.substr(0, i) | std::views::reverse) &&
        !begins_cased(text.substr(i + 1))) {
      lower.push_back(kFinalSigma);
    } else {
      for (const char32_t code : bert::to_lower(text[i])) lower.push_back(code);
    }
  }
  return lower;
}

bool is_python_space(char32_t code) { return class_of(code) == CharClass::kSpace || (code >= 0x1C && code <= 0x1F); }

bool is_python_word(char32_t code) {
  return class_of(code) == CharClass::kLetter || class_of(code) == CharClass::kNumber || code == '_';
}

}  // namespace teratron::squad
