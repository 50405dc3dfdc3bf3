// Which words of a sample BERT is to predict: n-grams of whole words.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.h"

namespace teratron {

// Tokens [begin, end) of a sample: a word, or words one right behind the other.
struct WordRun {
  std::int32_t begin = 0, end = 0;
  std::int32_t size() const { return end - begin; }
  bool operator==(const WordRun&) const = default;
};

// The law of a masked n-gram's length, over the lengths 1 to `longest` that fit.
struct NgramLaw {
  int longest = 3;            // words
  bool is_geometric = false;  // p(n) ~ 0.8^(n - 1), SpanBERT's (Joshi et al., arXiv 1907.10529); else ~ 1 / n
};

// What a token is to masking.
enum class TokenKind : std::uint8_t {
  kBeginsWord,
  kContinuesWord,  // belongs to the word of the token before it, where there is one
  kSpecial,        // in no word: never masked, and a word does not go on behind it
};

// The words of a sample, in their order. `words` is overwritten.
void find_words(std::span<const TokenKind> tokens, std::vector<WordRun>& words);

// How many of so many tokens are to be masked: their share `prob`, rounded (halves to even), and one at least.
std::int64_t masking_budget(std::int64_t tokens, double prob);

// Draws n-grams until they hold `budget` tokens. Words are drawn in random order, each once; with each begins an n-gram
// of n <= law.longest words, drawn by the law over those n for which the words stand side by side. One that would
// exceed the budget is cut to the most words that do not, and is passed over where not even the first fits or one of
// its words is taken. Where no word fits, one of the shortest is taken, so that there always is something to predict in
// a sample with words. `drawn`, in the order they were drawn, and `scratch` are overwritten. Returns how many tokens
// were drawn.
std::int64_t draw_ngrams(std::span<const WordRun> words, std::int64_t budget, const NgramLaw& law, RandomStream stream,
                         std::vector<WordRun>& drawn, std::vector<std::int32_t>& scratch);

}  // namespace teratron
