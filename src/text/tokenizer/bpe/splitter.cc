#include "tokenizer/bpe/splitter.h"

#include "base/utf8.h"
#include "tokenizer/unicode.h"

namespace teratron {
namespace {

struct Char {
  CharClass kind = CharClass::kSymbol;
  std::size_t length = 1;
};

// Whether a number is of Unicode 17 and not of 16: Hugging Face's Digits isolates these 13, too; its patterns are
// of 16.
bool is_younger_number(char32_t code) {
  return (code >= 0x11DE0 && code <= 0x11DE9) || (code >= 0x16FF4 && code <= 0x16FF6);
}

template <bool kYoungerNumbers = false>
Char char_at(std::string_view text, std::size_t position) {
  const auto byte = static_cast<unsigned char>(text[position]);
  if (byte < 0x80) return {class_of(byte), 1};
  const Utf8Step step = decode_utf8(text.substr(position));
  if (step.status != Utf8Status::kValid) return {};
  if (kYoungerNumbers && is_younger_number(step.code)) return {CharClass::kNumber, step.length};
  return {class_of(step.code), step.length};
}

// The end of the run of characters of one class.
template <bool kYoungerNumbers = false>
std::size_t end_of_run(std::string_view text, std::size_t end, CharClass kind) {
  while (end < text.size()) {
    const Char next = char_at<kYoungerNumbers>(text, end);
    if (next.kind != kind) break;
    end += next.length;
  }
  return end;
}

// GPT-2's first alternatives, in lower case only.
std::size_t contraction_length(std::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  const char first = text[1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const std::string_view two = text.substr(1, 2);
  return two == "re" || two == "ve" || two == "ll" ? 3 : 0;
}

// Length in either case. The long s is a lower case of S.
std::size_t contraction_length_in_any_case(std::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  if (text.substr(1).starts_with("\u017F")) return 3;
  const char lower[] = {'\'', static_cast<char>(text[1] | 0x20),
                        text.size() > 2 ? static_cast<char>(text[2] | 0x20) : ' '};
  return contraction_length({lower, 3});
}

// A run of white space leaves its last character to the next word, unless it has only that one, or a number follows
// that is a word by itself.
template <bool kDigitsApart>
std::size_t space_length(std::string_view text) {
  std::size_t end = 0, last = 0;
  while (end < text.size()) {
    const Char next = char_at<kDigitsApart>(text, end);
    if (kDigitsApart && next.kind == CharClass::kNumber) return end;
    if (next.kind != CharClass::kSpace) return last > 0 ? last : end;
    last = end;
    end += next.length;
  }
  return end;
}

// A run of white space up to its last line end, if it has one.
std::size_t space_length_to_line_end(std::string_view text) {
  std::size_t end = 0, lines = 0;
  while (end < text.size()) {
    const Char next = char_at(text, end);
    if (next.kind != CharClass::kSpace) break;
    end += next.length;
    if (text[end - 1] == '\n' || text[end - 1] == '\r') lines = end;
  }
  return lines > 0 ? lines : space_length<false>(text);
}

template <bool kDigitsApart>
std::size_t word_length(std::string_view text) {
  if (const std::size_t length = contraction_length(text)) return length;
  Char first = char_at<kDigitsApart>(text, 0);
  if (kDigitsApart && first.kind == CharClass::kNumber) return first.length;
  std::size_t end = first.length;
  if (text[0] == ' ' && text.size() > 1) {
    const Char second = char_at<kDigitsApart>(text, 1);
    if (second.kind != CharClass::kSpace && !(kDigitsApart && second.kind == CharClass::kNumber)) {
      first = second;
      end += second.length;
    }
  }
  if (first.kind == CharClass::kSpace) return space_length<kDigitsApart>(text);
  return end_of_run<kDigitsApart>(text, end, first.kind);
}

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

std::size_t detail::general_word_length(std::string_view text) { return word_length<false>(text); }
std::size_t detail::general_word_length_beside_digits(std::string_view text) { return word_length<true>(text); }

std::size_t detail::general_word_length_with_mark(std::string_view text, int most_digits) {
  if (const std::size_t length = contraction_length_in_any_case(text)) return length;
  const Char first = char_at(text, 0);
  std::size_t end = first.length;
  if (first.kind == CharClass::kLetter) return end_of_run(text, end, CharClass::kLetter);
  if (first.kind == CharClass::kNumber) {
    for (int digits = 1; digits < most_digits && end < text.size(); ++digits) {
      const Char next = char_at(text, end);
      if (next.kind != CharClass::kNumber) break;
      end += next.length;
    }
    return end;
  }
  const Char second = end < text.size() ? char_at(text, end) : Char{CharClass::kSpace, 0};
  const bool is_line_end = text[0] == '\n' || text[0] == '\r';
  if (second.kind == CharClass::kLetter && !is_line_end) return end_of_run(text, end, CharClass::kLetter);
  if (first.kind == CharClass::kSpace && !(text[0] == ' ' && second.kind == CharClass::kSymbol)) {
    return space_length_to_line_end(text);
  }
  end = end_of_run(text, end, CharClass::kSymbol);
  while (end < text.size() && (text[end] == '\n' || text[end] == '\r')) ++end;
  return end;
}

std::size_t next_safe_cut(std::string_view text, std::size_t from, BpeSplitter splitter) {
  const bool at_line_ends = splitter == BpeSplitter::kGpt2 || splitter == BpeSplitter::kDigits;
  for (std::size_t i = from; i < text.size(); ++i) {
    if (i == 0 || !is_ascii_space(text[i]) || (!at_line_ends && (text[i] == '\n' || text[i] == '\r'))) continue;
    const char before = text[i - 1];
    if (static_cast<unsigned char>(before) < 0x80 && !is_ascii_space(before)) return i;
  }
  return text.size();
}

}  // namespace teratron
