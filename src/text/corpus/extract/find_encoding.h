// Which encoding the bytes of a page are in: seen in the bytes first, for what pages and servers say is often wrong.
#pragma once

#include <string_view>

namespace teratron {

// The name of the encoding (charset.h), by the first of these that tells:
//  1. a byte order mark; NUL bytes where UTF-16 has them; the escapes of ISO-2022-JP
//  2. UTF-8, where that is what the page is, but for a few damaged characters
//  3. the declarations under which the page decodes without errors: `transport`, the label in the HTTP header, and the
//     page's own <meta> or XML declaration, wherever it stands
//  4. uchardet
//  5. windows-1252
// Where 3 and 4 differ, CLD2 judges which text reads like a language; if it cannot tell, the first declaration counts.
std::string_view find_encoding(std::string_view page, std::string_view transport);

}  // namespace teratron
