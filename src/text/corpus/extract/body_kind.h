// Recognises what a body is by its bytes: servers and archives often declare something else. Measured on the files of a
// Debian machine: 1,209 of 1,436 scripts and style sheets (.js, .css) are dropped; of 1,824 plain texts five are, which
// are programs or tables of settings; of 2,616 pages one is, a template.
#pragma once

#include <string_view>

namespace teratron {

// Compressions with a signature. Brotli and DEFLATE without a header have none.
enum class Packing { kNone, kGzip, kZlib, kZstd };
Packing packing_of(std::string_view body);

// The format of a file that is no page and no text, by its first bytes after white space: "PNG", "PDF", "ZIP" ...;
// empty if none is known.
std::string_view file_format_of(std::string_view body);

// Whether bytes can be text in UTF-16 or an encoding with ASCII's control characters: at most one in a hundred is a
// control character that texts do not contain.
bool can_be_text(std::string_view bytes);

// The encoding of UTF-16 without a mark: markup is ASCII, so one of the two bytes of many characters is NUL, always the
// same one. Empty: another.
std::string_view utf16_without_mark(std::string_view bytes);

// Whether a page's text (UTF-8) was decoded from bytes that are no text: at least one in twenty of its characters is
// U+FFFD or a control character.
bool is_garbage(std::string_view text);

// Whether a text is a program or a style sheet: at least one in fifty of its bytes, without spaces, is one of { } ; and
// =. Several equal ones in a row count once, since texts underline headings with them. Prose has one in 200, texts
// about programs one in 70.
bool is_program(std::string_view text);

// Whether at least half of a text, without spaces, is ASCII words of 50 characters or more: base64, packed scripts,
// hexadecimal digits. No language has such words. Lines of signs do not count.
bool is_encoded_data(std::string_view text);

// Whether it begins like a page: with a tag, a comment or a declaration.
bool begins_with_markup(std::string_view body);

// As begins_with_markup(), but not XML other than XHTML.
bool begins_as_html(std::string_view body);

}  // namespace teratron
