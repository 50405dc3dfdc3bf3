// UTF-8 that was read as Latin-1 or windows-1252 ("cafÃ©"), found and read again. The rule is that of ftfy 6.3's
// fix_encoding, for these two encodings.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// A line (valid UTF-8), mended as often as it was garbled. Where it looks garbled (garbled_signs.h), the first of these
// that changes it is done, and again until nothing does:
//   - the whole line is written in Latin-1, else in windows-1252, and read as UTF-8. A space there stands for the byte
//     A0 where that makes a character ("voilÃ le"), and a sequence of which a byte was lost becomes U+FFFD;
//   - runs of characters that look like sequences of UTF-8 are mended alone, each if it looks garbled by itself;
//   - controls of Latin-1 become what windows-1252 has in their place.
std::string mend_mojibake(std::string_view line);

}  // namespace teratron
