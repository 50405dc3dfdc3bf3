// What the bytes of a body are, seen in the bytes: servers and archives often say otherwise.
#pragma once

#include <string_view>

namespace teratron {

// Compression that begins with bytes of its own. Brotli and DEFLATE without a header have none.
enum class Packing { kNone, kGzip, kZlib, kZstd };
Packing packing_of(std::string_view body);

// The format of a file that is no page and no text, by its first bytes: "PNG", "PDF", "ZIP" ...; empty: none of those
// that are known. Takes no notice of white space before them.
std::string_view file_format_of(std::string_view body);

// Whether bytes can be text in an encoding that has ASCII's control characters, or in UTF-16: no more than one in a
// hundred is a control character that texts do not have.
bool can_be_text(std::string_view bytes);

// Whether a page's text (UTF-8) is what came of bytes that are no text: one in twenty of its characters or more is
// U+FFFD or a control character.
bool is_garbage(std::string_view text);

// Whether a text is a program or a style sheet: one in fifty of its bytes or more, spaces not counted, is one of { } ;
// and =. Several of a kind in a row count once, since texts underline headings with them. Texts of languages have one
// in 200, and those about programs one in 70.
bool is_program(std::string_view text);

// Whether half of a text or more, spaces not counted, is words of ASCII with 50 characters or more: base64, packed
// scripts, hexadecimal digits. No language has such words. Lines of signs are none.
bool is_encoded_data(std::string_view text);

// Whether it begins as a page does: with a tag, a comment or a declaration.
bool begins_with_markup(std::string_view body);

// The same, and not as other XML than XHTML.
bool begins_as_html(std::string_view body);

}  // namespace teratron
