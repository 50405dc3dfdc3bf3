// Mends UTF-8 that was read as Latin-1 or windows-1252 ("cafÃ©"), by the rule of ftfy 6.3's fix_encoding for these two
// encodings.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// Mends a line (valid UTF-8) as often as it was garbled. While it looks garbled (garbled_signs.h), the first of these
// steps that changes it is applied:
//   - write the whole line in Latin-1, else in windows-1252, and read it as UTF-8. A space stands for the byte A0 where
//     that makes a character ("voilÃ le"); a sequence that lost a byte becomes U+FFFD;
//   - mend runs of characters that look like sequences of UTF-8, each if it looks garbled by itself;
//   - replace controls of Latin-1 by the characters of windows-1252.
std::string mend_mojibake(std::string_view line);

// Stands for an unknown byte that was shown as U+FFFD.
inline constexpr char kLostByte = 0x1A;

// Replaces a space by the byte A0 where that makes a likely character of two to four bytes. "\xC3 " becomes "\u00E0",
// followed by a space if it is a word of its own.
std::string with_spaces_restored(std::string_view bytes);

// Replaces each sequence that lost bytes by U+FFFD.
std::string with_losses_shown(std::string_view bytes);

}  // namespace teratron
