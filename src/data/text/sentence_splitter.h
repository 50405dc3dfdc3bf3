// Text to sentences, by rules for English.
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
// So decimals, addresses and "Yahoo! is" stay whole. Known to be missed: sentences that begin with a small letter
// ("iPhones"), an abbreviation that no list has, a name behind one that ends a sentence ("in the U.S. Kennedy"), quoted
// questions with a name behind ("Why?" Anna said). Languages with other stops, or without white space, come out as a
// sentence for each paragraph. Bytes that are not UTF-8 are symbols.
std::vector<std::string_view> split_sentences(std::string_view text);

}  // namespace teratron
