// Repairs text as ftfy 6.3's default configuration does. Equal results, found by tests/golden/make_ftfy_golden.py with
// ftfy 6.3.1: sentences in 50 languages, clean, garbled once and twice, half garbled, and with spaces for U+00A0; 319
// words, each garbled alone in an English line (ftfy mends 618 of the 638 lines); random characters; all pairs of the
// signs of windows-1252. So ftfy's mistakes are ours: a real "Ã" or "Â" before a space, after a lower-case letter,
// becomes "à" or U+00A0. Not there: encodings other than Latin-1 and windows-1252 (windows-1250, 1251, 1253, 1254,
// 1257, iso-8859-2, MacRoman, cp437), CESU-8, Java's U+0000; fix_surrogates, since UTF-8 has none.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// Repairs a text (valid UTF-8) line by line, each until nothing changes, by ftfy's rules in its order:
//   unescape_html (automatic)                  HTML's character references, unless a "<" came in this line or before
//   fix_encoding with decode_inconsistent_utf8, restore_byte_a0, replace_lossy_sequences
//                                              mojibake, nested to any depth (mojibake.h)
//   fix_c1_controls                            controls of Latin-1 as windows-1252
//   fix_latin_ligatures, fix_character_width   ligatures of Latin letters; full-width and half-width forms
//   uncurl_quotes, fix_line_breaks             straight quotes; line ends as "\n"
//   remove_terminal_escapes, remove_control_chars, normalisation form C
std::string repair_text(std::string_view text);

// Removes needless newlines: white space before a line end and at the end of the text goes, and empty lines at both
// ends; the first line keeps its indentation. Three line ends and more become two, and a single line end inside a
// sentence becomes a space. It is inside a sentence if a letter, a digit or a comma comes before it and a lower-case
// letter after it.
std::string remove_needless_newlines(std::string_view text);

}  // namespace teratron
