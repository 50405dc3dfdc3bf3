// A response of an HTTP server, as it came over the wire.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "corpus/extract/http_compression.h"

namespace teratron {

struct HttpHead {
  int status = 0;
  std::string media_type, charset;     // of Content-Type: "text/html", "utf-8"; in small letters, empty: not said
  std::vector<std::string> encodings;  // of Content-Encoding, in the order in which they were applied
  bool is_chunked = false;
  std::size_t bytes = 0;  // with the empty line behind it

  // Whether its body can be a page: status 200, HTML or XHTML.
  bool is_page() const { return status == 200 && (media_type == "text/html" || media_type == "application/xhtml+xml"); }
};

// Longer heads are none.
constexpr std::size_t kLongestHttpHead = std::size_t{64} << 10;

// The head that `response` begins with; lines may end in LF alone. Nothing: there is none, or it does not end.
std::optional<HttpHead> parse_http_head(std::string_view response);

// `body` is what is behind the head, decoded where it is (decompress_body()).
HttpBody decode_http_body(const HttpHead& head, std::string_view body, std::size_t most_bytes);

// A page that did not come from a server, as one would send it. `is_utf8`: whatever the page itself says.
std::string as_http_response(std::string_view page, bool is_utf8);

}  // namespace teratron
