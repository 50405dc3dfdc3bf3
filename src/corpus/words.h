// The words that n-grams are made of, whatever the punctuation and the case.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace teratron {

// A word is a run of letters, numbers and the marks that belong to them; characters of scripts written without spaces
// (Han, kana) are a word each. Everything else lies between words.
struct Word {
  std::uint64_t hash;        // of its small letters
  std::uint32_t begin, end;  // in the text, bytes
};

// UserError: a text of 4 GiB or more.
std::vector<Word> words_of(std::string_view text);

// A hash of 64 bits for each run of `count` words, in order; of a text that has some words, but fewer, one for all of
// them. Runs are taken for equal where their hashes are: of n different ones, about n^2 / 2^65 pairs are not.
std::vector<std::uint64_t> ngrams_of(std::span<const Word> words, std::int64_t count);

// The hash of one run.
std::uint64_t ngram_hash(std::span<const Word> run);

}  // namespace teratron
