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

// Whether it begins as a page does: with a tag, a comment or a declaration.
bool begins_with_markup(std::string_view body);

// The same, and not as other XML than XHTML.
bool begins_as_html(std::string_view body);

}  // namespace teratron
