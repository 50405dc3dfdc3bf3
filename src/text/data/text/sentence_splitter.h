// Text to sentences: by rules for English, and by the marks that end sentences in other scripts.
#pragma once

#include <string_view>
#include <vector>

namespace teratron {

// The sentences of a text, without the white space around them; what lies between two is white space alone, so they and
// it are the text. None is empty.
//
// A sentence ends
//   - before a blank line, and where the text ends; a single line end is white space like any other;
//   - behind ".", "?", "!", an ellipsis ("...", U+2026) or several of them, with the quotes and brackets that close
//     there and notes in brackets ("so.[1]"), if white space follows and what comes next, behind opening quotes and
//     brackets, begins neither with a small letter nor with a mark that goes on with a sentence (, ; : ) ] } . ? !).
// A single "." does not end it behind
//   - a title and the like ("Dr", "vs", "e.g": kGoesOn in the source);
//   - a number sign ("No", "Fig", "pp": kBeforeNumber) with a digit behind;
//   - an initial ("J. Smith"), letters with stops ("U.S.", "p.m.") or an abbreviation that may stand last ("etc",
//   "Inc",
//     "Jan": kMayEnd), unless one of the words follows that often begin a sentence ("The", "He": kBeginsSentence);
//   - the number or letter of a list that the sentence begins with ("1. ", "A. ").
//
// Quotes close as they were opened: U+201E with U+201C, U+00BB with U+00AB, and U+00AB with U+00BB, behind a space,
// too.
//
// So decimals, addresses and "Yahoo! is" stay whole. Known to be missed: sentences that begin with a small letter
// ("iPhones"), an abbreviation that no list has, a name behind one that ends a sentence ("in the U.S. Kennedy"), quoted
// questions with a name behind ("Why?" Anna said). Bytes that are not UTF-8 are symbols.
//
// In other scripts a sentence ends behind one or several of the marks that Unicode says end sentences
// (Sentence_Terminal, sentence_terminals.h: of Chinese and Japanese, Devanagari and other scripts of India, Arabic,
// Urdu, Armenian, Ethiopic, Burmese, Khmer, Tibetan and more), with what closes there, whether white space follows or
// not; but not before a mark that goes on with a sentence, nor within a number. Between ideographs or kana "!", "?",
// "." and two ellipses do so too. What has no such mark (Thai, Lao) comes out as a sentence for each paragraph.
std::vector<std::string_view> split_sentences(std::string_view text);

// The lines of a text without the white space around them, as BERT's own tools take sentences; blank ones are left out.
std::vector<std::string_view> split_lines(std::string_view text);

enum class SentenceSplit { kNone, kPunctuation, kLines };

}  // namespace teratron
