// Chooses the words of a sample that BERT predicts: n-grams of whole words.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.h"

namespace teratron {

// Tokens [begin, end) of a sample: a word, or adjacent words.
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

// Kinds of tokens for masking.
enum class TokenKind : std::uint8_t {
  kBeginsWord,
  kContinuesWord,  // continues the word of the token before it, if there is one
  kSpecial,        // in no word, and ends a word; never masked
};

// The words of a sample, in their order. `words` is overwritten.
void find_words(std::span<const TokenKind> tokens, std::vector<WordRun>& words);

// Number of tokens to mask of `count`: the share `prob`, rounded (halves to even), at least one.
std::int64_t masking_budget(std::int64_t tokens, double prob);

// Draws n-grams until they hold `budget` tokens. Words are drawn in random order, each once. With each begins an n-gram
// of n <= law.longest words, drawn by the law over those n for which the words are adjacent. One that would exceed the
// budget is cut to the most words that fit; it is skipped if not even the first fits or one of its words is taken. If
// no word fits, one of the shortest is taken, so that a sample with words always has a target. Overwrites `drawn` (in
// the order of the draw) and `scratch`. Returns the number of tokens drawn.
std::int64_t draw_ngrams(std::span<const WordRun> words, std::int64_t budget, const NgramLaw& law, RandomStream stream,
                         std::vector<WordRun>& drawn, std::vector<std::int32_t>& scratch);

}  // namespace teratron
