#include "eval/wikitext.h"

#include <algorithm>
#include <array>
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

// Strips white space inside each pair. An opener is paired with the next closer, at any distance.
void strip_inside(std::string& text, char opener, char closer) {
  std::string result;
  result.reserve(text.size());
  std::size_t begin = 0;
  while (true) {
    const std::size_t open = text.find(opener, begin);
    const std::size_t close = open == std::string::npos ? open : text.find(closer, open + 1);
    if (close == std::string::npos) break;
    result.append(text, begin, open + 1 - begin);
    result.append(strip(std::string_view(text).substr(open + 1, close - open - 1)));
    result.push_back(closer);
    begin = close + 1;
  }
  result.append(text, begin);
  text = std::move(result);
}

}  // namespace

std::int64_t count_wikitext_words(std::string_view text) {
  const std::string_view stripped = strip(text);
  return 1 + std::count(stripped.begin(), stripped.end(), ' ');
}

std::string detokenize_wikitext(std::string_view original) {
  using Pair = std::pair<std::string_view, std::string_view>;
  constexpr std::array<Pair, 10> kBeforePairs = {{{"s '", "s'"},
                                                  {" @-@ ", "-"},
                                                  {" @,@ ", ","},
                                                  {" @.@ ", "."},
                                                  {" : ", ": "},
                                                  {" ; ", "; "},
                                                  {" . ", ". "},
                                                  {" ! ", "! "},
                                                  {" ? ", "? "},
                                                  {" , ", ", "}}};
  constexpr std::array<Pair, 8> kAfterPairs = {{{"= = = =", "===="},
                                                {"= = =", "==="},
                                                {"= =", "=="},
                                                {" \xC2\xB0 ", "\xC2\xB0"},
                                                {" \n", "\n"},
                                                {"\n ", "\n"},
                                                {" N ", " 1 "},
                                                {" 's", "'s"}}};
  constexpr std::array<std::pair<char, char>, 5> kPairs = {
      {{'(', ')'}, {'[', ']'}, {'{', '}'}, {'"', '"'}, {'\'', '\''}}};
  std::string text(original);
  for (const auto& [from, to] : kBeforePairs) replace_all(text, from, to);
  for (const auto& [opener, closer] : kPairs) strip_inside(text, opener, closer);
  for (const auto& [from, to] : kAfterPairs) replace_all(text, from, to);
  return text;
}

}  // namespace teratron
