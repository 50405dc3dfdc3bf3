// WikiText103 by the rules of the Megatron-LM paper (Appendix E.1) and its evaluation code: the text is detokenised,
// encoded as one string, and scored in overlapping windows (windows.h). Perplexity is per word of the original file, so
// that tokenizers can be compared.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace teratron {

// Words of the original file: its stripped text, split at every single space.
std::int64_t count_wikitext_words(std::string_view text);

// Undoes the corpus's tokenisation: white space around punctuation, brackets, quotes and headings. It loses the kind of
// white space inside brackets, the word `N` (which becomes `1`), and spaces at line ends.
std::string detokenize_wikitext(std::string_view text);

}  // namespace teratron
