#include "eval/wikitext.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/replace_all.h"
#include "jinja/values/python_text.h"

namespace teratron {
namespace {

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
    result.append(jinja::stripped(std::string_view(text).substr(open + 1, close - open - 1)));
    result.push_back(closer);
    begin = close + 1;
  }
  result.append(text, begin);
  text = std::move(result);
}

}  // namespace

std::int64_t count_wikitext_words(std::string_view text) { return 1 + std::ranges::count(jinja::stripped(text), ' '); }

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
