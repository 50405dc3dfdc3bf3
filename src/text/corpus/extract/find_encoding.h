// Finds the encoding of a page. Its bytes come first: pages and servers often declare a wrong one.
#pragma once

#include <string_view>

namespace teratron {

// The name of the encoding (charset.h), by the first of these that decides:
//  1. a byte order mark; NUL bytes as in UTF-16; the escapes of ISO-2022-JP
//  2. UTF-8, if the page is that, whatever it declares; of its characters that are not ASCII one in five may be
//     damaged, or one in two if UTF-8 is declared
//  3. the declarations under which at most one in a hundred of the text's bytes that are not ASCII is an error:
//     `transport`, the label in the HTTP header, and the page's own <meta> or XML declaration, wherever it is
//  4. uchardet
//  5. windows-1252
// If the candidates of 3 and 4 differ, CLD2 judges which text reads like a language; without a decision the first
// declaration counts. windows-1250 and iso-8859-2, which pages name for each other, are then told apart by letters.
std::string_view find_encoding(std::string_view page, std::string_view transport);

}  // namespace teratron
