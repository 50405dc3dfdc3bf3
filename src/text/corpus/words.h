// The words that n-grams are made of, whatever the punctuation and the case.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace teratron {

// A word is a run of letters, numbers and the marks that belong to them. In scripts written without spaces it is one
// character (Han, kana, Yi), or one letter with its marks and with those that are joined to it (Thai, Lao, Khmer,
// Burmese, Javanese and others; a syllable has two or three of them). Soft hyphens, joiners and
// spaces without width count for nothing. Everything else lies between words.
struct Word {
  std::uint64_t hash;        // of it in NFKC, without case
  std::uint32_t begin, end;  // in the text, bytes
};

// UserError: a text of 4 GiB or more.
std::vector<Word> words_of(std::string_view text);

// A hash of 64 bits for each run of `count` words, in order; of a text that has some words, but fewer, one for all of
// them. Runs are taken for equal where their hashes are: of n different ones, about n^2 / 2^65 pairs are not.
std::vector<std::uint64_t> ngrams_of(std::span<const Word> words, std::int64_t count);

// What a text is compared by as a whole: its n-grams, or, where it has no word, one hash of its characters but white
// space, so that copies of it are known. Of an empty text, too.
std::vector<std::uint64_t> shingles_of(std::string_view text, std::int64_t count);

// The hash of one run.
std::uint64_t ngram_hash(std::span<const Word> run);

}  // namespace teratron
