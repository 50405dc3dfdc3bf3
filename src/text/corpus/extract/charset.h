// Encodings by their labels in encoding.spec.whatwg.org, and their conversion to UTF-8 by glibc's iconv.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace teratron {

// The encoding of a label ("latin1": "windows-1252"); empty if the label is unknown, or no browser reads its encoding.
std::string_view encoding_of_label(std::string_view label);

// Converts `page` to UTF-8, without a byte order mark. Invalid bytes become U+FFFD, as in a browser. `errors`: their
// number, without a character that the end of the page cuts off. EnvironmentError: iconv of this machine lacks it.
std::string to_utf8(std::string_view page, std::string_view encoding, std::int64_t* errors = nullptr);

}  // namespace teratron
