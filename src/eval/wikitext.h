// WikiText103 by the Megatron-LM paper's rules (section 5.1 and its evaluation code; ../shared/reference/megatron.md
// section 5): the text is detokenised, encoded as one string, and scored in overlapping windows; the perplexity is per
// word of the original file, so that tokenizers can be compared.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/gpt2.h"

namespace teratron {

// Words of the original file: its stripped text, split at every single space.
std::int64_t count_wikitext_words(std::string_view text);

// Undoes the corpus's tokenisation: white space around punctuation, brackets, quotes and headings. What cannot be told
// apart afterwards is lost: the kind of white space inside brackets, `N` and `1` as a word, spaces at line ends.
std::string detokenize_wikitext(std::string_view text);

// One window of a text of `targets` + 1 tokens: inputs begin .. begin + length - 1, scored from first_scored on.
struct ScoringWindow {
  std::int64_t begin, length, first_scored;  // first_scored counts from begin
};

// Windows of at most `length` inputs, each `stride` further on: the first scores all of its targets, later ones those
// that no earlier one has, so that every target is scored exactly once. 0 < stride <= length.
std::vector<ScoringWindow> scoring_windows(std::int64_t targets, std::int64_t length, std::int64_t stride);

// The sum of the losses (nats) of all targets of `tokens`. `progress` hears how many were scored so far.
double score_windows(Gpt2Runner& runner, std::span<const std::int32_t> tokens, std::span<const ScoringWindow> windows,
                     const std::function<void(std::int64_t, double)>& progress);

}  // namespace teratron
