// The named and numbered character references of HTML in text that is not markup.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// Name, code points in hexadecimal joined by '+', name, ...; written by scripts/make-html-entities.
extern const std::string_view kHtmlEntityTable;

// Replaces known references that end with a semicolon: HTML 5's names; lower-case names written in capitals ("&EACUTE;"
// is a capital E with its accent); numbers, as browsers read them (128 to 159 are windows-1252's).
std::string unescape_html(std::string_view text);

}  // namespace teratron
