// Words for n-grams, without punctuation and case.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace teratron {

// A word is a run of letters, numbers and the marks that belong to them. In scripts without spaces it is one character
// (Han, kana, Yi), or one letter with its marks and the letters joined to it (Thai, Lao, Khmer, Burmese, Javanese and
// others; a syllable has two or three of them). Soft hyphens, joiners and zero-width spaces are ignored. Everything
// else separates words.
struct Word {
  std::uint64_t hash;        // of the word in NFKC, without case
  std::uint32_t begin, end;  // bytes of the text
};

// UserError: a text of 4 GiB or more.
std::vector<Word> words_of(std::string_view text);

// A hash of 64 bits for each run of `count` words, in order. A text with fewer words, but some, has one hash of them
// all. Runs with equal hashes count as equal: of n different ones, about n^2 / 2^65 pairs collide.
std::vector<std::uint64_t> ngrams_of(std::span<const Word> words, std::int64_t count);

// The elements by which whole texts are compared: the n-grams, or for a text without words (also the empty one) a
// single hash of its characters without white space.
std::vector<std::uint64_t> shingles_of(std::string_view text, std::int64_t count);

// The hash of one run.
std::uint64_t ngram_hash(std::span<const Word> run);

}  // namespace teratron
