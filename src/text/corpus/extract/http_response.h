// A response of an HTTP server, as it came over the wire.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "corpus/extract/body_unpacking.h"

namespace teratron {

struct HttpHead {
  int status = 0;
  std::string media_type, charset;     // of Content-Type: "text/html", "utf-8"; in small letters, empty: not said
  std::string seen_type;               // what a crawler saw in the body (kSeenTypeField); empty: not said
  std::vector<std::string> encodings;  // of Content-Encoding, then of Transfer-Encoding, as they were applied
  bool is_chunked = false;
  std::size_t bytes = 0;  // with the empty line behind it

  // Whether its body can be a page: status 200; HTML or XHTML by what the server says or, where that says nothing of
  // use, by what the crawler saw. Where neither says anything, the body has to show it.
  bool is_page() const;
  bool says_nothing() const;  // of the body's type
};

// The field of a WARC record that says what its writer took the body for; in a head it comes before the server's.
constexpr std::string_view kSeenTypeField = "WARC-Identified-Payload-Type";

// Longer heads are none.
constexpr std::size_t kLongestHttpHead = std::size_t{64} << 10;

// The head that `response` begins with; lines may end in LF alone. Nothing: there is none, or it does not end.
std::optional<HttpHead> parse_http_head(std::string_view response);

// `body` is what is behind the head. It comes back without chunks and compression, those that the head tells of and
// those that can be seen in the body, as far as they are really there: archives store bodies unpacked and leave the
// head as it was, and heads name compression that servers did not do. Where nothing of it can be had, there is a
// reason.
UnpackedBody decode_http_body(const HttpHead& head, std::string_view body, std::size_t most_bytes);

// A page that was not archived as a response, as a server would send it. `is_utf8`: whatever the page itself says. A
// response that was saved with its head, as `curl -i` does, is taken as that; of several, the last.
std::string as_http_response(std::string_view page, bool is_utf8);

}  // namespace teratron
