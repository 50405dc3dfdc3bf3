// Encodings by the names that encoding.spec.whatwg.org gives them, and their bytes as UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace teratron {

// The encoding that a label means ("latin1": "windows-1252"); empty: the label is not known, or no browser reads what
// it means.
std::string_view encoding_of_label(std::string_view label);

// `page` in UTF-8, without a byte order mark. What is no character becomes U+FFFD, as in a browser. `errors`: how many
// times that was so, but for a character that the end of the page cuts off.
std::string to_utf8(std::string_view page, std::string_view encoding, std::int64_t* errors = nullptr);

}  // namespace teratron
