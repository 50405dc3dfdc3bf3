#include "eval/python_text.h"

#include <utility>

#include "base/utf8.h"
#include "tokenizer/unicode.h"

namespace teratron {
namespace {

// Bytes of white space, by the rules of Python's str.strip and \s, at the beginning of `text`.
std::size_t leading_space(std::string_view text) {
  std::size_t used = 0;
  while (used < text.size()) {
    const Utf8Step step = decode_utf8(text.substr(used));
    const bool separator = step.code >= 0x1c && step.code <= 0x1f;  // Python counts these four controls too
    if (step.status != Utf8Status::kValid || !(separator || class_of(step.code) == CharClass::kSpace)) break;
    used += step.length;
  }
  return used;
}

std::size_t trailing_space(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t begin = end - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    if (leading_space(text.substr(begin, end - begin)) != end - begin) break;
    end = begin;
  }
  return text.size() - end;
}

}  // namespace

std::string_view strip(std::string_view text) {
  text.remove_prefix(leading_space(text));
  text.remove_suffix(trailing_space(text));
  return text;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  std::size_t begin = 0;
  while (true) {
    const std::size_t found = text.find(from, begin);
    if (found == std::string::npos) break;
    result.append(text, begin, found - begin).append(to);
    begin = found + from.size();
  }
  result.append(text, begin);
  text = std::move(result);
}

}  // namespace teratron
