// Splits text into sentences: by rules for English, and by the marks that end sentences in other scripts.
#pragma once

#include <string_view>
#include <vector>

namespace teratron {

// The sentences of a text, without surrounding white space. Only white space lies between two of them. None is empty.
//
// A sentence ends
//   - before a blank line, and where the text ends; a single line end is white space like any other;
//   - after ".", "?", "!", an ellipsis ("...", U+2026) or several of them, with closing quotes and brackets and notes
//     in brackets ("so.[1]"), if white space follows and the next text, after opening quotes and brackets, begins
//     neither with a lower-case letter (Georgian's begin sentences) nor with a mark that continues a sentence
//     (, ; : ) ] } . ? !).
// A single "." does not end it after
//   - a title and the like ("Dr", "vs", "e.g": kGoesOn in the source);
//   - a number sign ("No", "Fig", "pp": kBeforeNumber) before a digit;
//   - an initial ("J. Smith"), letters with stops ("U.S.", "p.m.") or an abbreviation that may stand last ("etc",
//     "Jan": kMayEnd), unless one of the words follows that often begin a sentence ("The", "He": kBeginsSentence);
//   - the number or letter of a list that the sentence begins with ("1. ", "A. ").
//
// Quotes close as they were opened: U+201E with U+201C, U+00BB with U+00AB, and U+00AB with U+00BB, also after a space.
//
// So decimals, addresses and "Yahoo! is" stay whole. Known misses: sentences that begin with a lower-case letter
// ("iPhones"), abbreviations in no list, a name after one that ends a sentence ("in the U.S. Kennedy"), quoted
// questions before a name ("Why?" Anna said). Bytes that are not UTF-8 are symbols.
//
// In other scripts a sentence ends after the marks that Unicode says end sentences (Sentence_Terminal: of Chinese and
// Japanese, Devanagari and other scripts of India, Arabic, Urdu, Armenian, Ethiopic, Burmese, Khmer, Tibetan and more),
// with closing marks, whether white space follows or not; but not before a mark that continues a sentence, nor inside a
// number. Between ideographs or kana "!", "?", "." and two ellipses end it, too. A script without such marks (Thai,
// Lao) gives a sentence for each paragraph.
std::vector<std::string_view> split_sentences(std::string_view text);

// The lines of a text without surrounding white space, as BERT's own tools take sentences; blank lines are left out.
std::vector<std::string_view> split_lines(std::string_view text);

enum class SentenceSplit { kNone, kPunctuation, kLines };

bool is_sentence_terminal(char32_t code);

}  // namespace teratron
