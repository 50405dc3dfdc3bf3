#include "tokenizer/bpe/splitter.h"

#include "base/utf8.h"
#include "tokenizer/unicode.h"

namespace teratron {
namespace {

struct Char {
  CharClass kind = CharClass::kSymbol;
  std::size_t length = 1;
};

Char char_at(std::string_view text, std::size_t position) {
  const auto byte = static_cast<unsigned char>(text[position]);
  if (byte < 0x80) return {class_of(byte), 1};
  const Utf8Step step = decode_utf8(text.substr(position));
  if (step.status != Utf8Status::kValid) return {};
  return {class_of(step.code), step.length};
}

// The pattern's first alternatives, in lower case only.
std::size_t contraction_length(std::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  const char first = text[1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const std::string_view two = text.substr(1, 2);
  return two == "re" || two == "ve" || two == "ll" ? 3 : 0;
}

// A run of white space leaves its last character to the next word, unless it has only that one.
std::size_t space_length(std::string_view text) {
  std::size_t end = 0, last = 0;
  while (end < text.size()) {
    const Char next = char_at(text, end);
    if (next.kind != CharClass::kSpace) return last > 0 ? last : end;
    last = end;
    end += next.length;
  }
  return end;
}

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

std::size_t detail::general_word_length(std::string_view text) {
  if (const std::size_t length = contraction_length(text)) return length;
  Char first = char_at(text, 0);
  std::size_t end = first.length;
  if (text[0] == ' ' && text.size() > 1) {
    const Char second = char_at(text, 1);
    if (second.kind != CharClass::kSpace) {
      first = second;
      end += second.length;
    }
  }
  if (first.kind == CharClass::kSpace) return space_length(text);
  while (end < text.size()) {
    const Char next = char_at(text, end);
    if (next.kind != first.kind) break;
    end += next.length;
  }
  return end;
}

std::size_t next_safe_cut(std::string_view text, std::size_t from) {
  for (std::size_t i = from; i < text.size(); ++i) {
    if (i == 0 || !is_ascii_space(text[i])) continue;
    const char before = text[i - 1];
    if (static_cast<unsigned char>(before) < 0x80 && !is_ascii_space(before)) return i;
  }
  return text.size();
}

}  // namespace teratron
