// Bytes of a page as text: which encoding they are in, and what they say in UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// The encoding that a label means, by the name that encoding.spec.whatwg.org gives it ("latin1": "windows-1252");
// empty: the label is not known, or no browser reads what it means.
std::string_view encoding_of_label(std::string_view label);

// The name of a page's encoding, by the first of these that says one: a byte order mark; `transport`, the label in the
// HTTP header; the page's own <meta> or XML declaration, in its first kDeclarationBytes; UTF-8 where the page is that;
// windows-1252.
constexpr std::size_t kDeclarationBytes = 4096;
std::string_view find_encoding(std::string_view page, std::string_view transport);

// The page in UTF-8, without a byte order mark. What is no character becomes U+FFFD, as in a browser.
std::string to_utf8(std::string_view page, std::string_view encoding);

}  // namespace teratron
