// UTF-8 that was read as Latin-1 or windows-1252 ("cafÃ©"), found and read again.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// A line (valid UTF-8) with such characters read as what they were, once: text that was garbled twice needs two calls.
//
// The characters that either encoding has for the bytes of a UTF-8 sequence are a candidate. Few of them are ever
// written on purpose. A candidate is certain where
//   - four bytes are decoded, or candidates follow one another directly;
//   - one of its characters but the first is seldom found beside a letter: a control character, a currency sign, a
//     fraction, a spacing accent, a dagger and the like;
//   - it is a byte order mark; or it begins with one of the four capitals that most garbled text of the Latin, Greek
//   and
//     Cyrillic alphabets begins with, and punctuation follows that seldom follows a capital.
// Certain candidates are mended, with those directly beside them. Where candidates are all that a line has beside ASCII
// and one of them is certain, all of the line is mended.
std::string mend_mojibake(std::string_view line);

}  // namespace teratron
