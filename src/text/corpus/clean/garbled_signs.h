// Recognises UTF-8 that was read as Latin-1 or windows-1252. The rule, its character classes and its exceptions are
// those of ftfy 6.3 (Robyn Speer, Apache-2.0; ftfy/badness.py), for characters of these encodings.
#pragma once

#include <string_view>

namespace teratron {

// Whether `text` has a run of two to four characters that is far more often garbled than written: a small accented
// letter before a currency sign, "Ã" before a space, a control character of Latin-1.
bool looks_garbled(std::u32string_view text);

}  // namespace teratron
