// An HTTP response as sent over the wire.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

struct UnpackedBody {
  std::string bytes;
  std::string flaw;            // why `bytes` may be incomplete: "compression cut short"; empty: complete
  std::string reason, detail;  // why there is no body: "bad http", "encoding" or "too large"; empty: there is one
  bool is_whole() const { return flaw.empty() && reason.empty(); }
};
UnpackedBody bad_http(std::string detail);
UnpackedBody too_large(std::size_t most_bytes);

// Decode RFC 1952 (all members), RFC 1950, RFC 1951, RFC 7932 and RFC 8878 (all frames), at most most_bytes. Truncated
// data give what they hold up to there. Bytes after the end of the data are ignored, but for RFC 7932 and 8878: a flaw.
UnpackedBody unpack_gzip(std::string_view body, std::size_t most_bytes);
UnpackedBody unpack_zlib(std::string_view body, std::size_t most_bytes);
UnpackedBody unpack_raw_deflate(std::string_view body, std::size_t most_bytes);
UnpackedBody unpack_brotli(std::string_view body, std::size_t most_bytes);
UnpackedBody unpack_zstd(std::string_view body, std::size_t most_bytes);

// Decodes RFC 9112, section 7.1; lines may end in LF alone, extensions and trailers are ignored. A body that does not
// begin with a chunk is returned unchanged: many archives store bodies without the chunks that their heads declare.
UnpackedBody join_chunks(std::string_view body, std::size_t most_bytes);

// Whether `body` begins with a whole chunk, followed by another one or nothing.
bool begins_as_chunks(std::string_view body);

struct HttpHead {
  int status = 0;
  std::string media_type, charset;     // of Content-Type: "text/html", "utf-8"; in lower case, empty: not declared
  std::string seen_type;               // the crawler's judgement (kSeenTypeField); empty: none
  std::vector<std::string> encodings;  // of Content-Encoding, then of Transfer-Encoding, in the order applied
  bool is_chunked = false;
  std::size_t bytes = 0;  // with the empty line at the end

  // Whether the body can be a page: status 200, and HTML or XHTML by the declared type or, if that is useless, by the
  // crawler's judgement. If neither says anything, the body decides.
  bool is_page() const;
  bool says_nothing() const;  // about the body's type
};

// The field of a WARC record with the writer's judgement of the body; in a head it comes before the server's fields.
constexpr std::string_view kSeenTypeField = "WARC-Identified-Payload-Type";

// Longer heads are not parsed.
constexpr std::size_t kLongestHttpHead = std::size_t{64} << 10;

// The head at the beginning of `response`; lines may end in LF alone. Empty: there is none, or it does not end.
std::optional<HttpHead> parse_http_head(std::string_view response);

// Decodes the body after the head: removes the chunks and compressions that the head declares and those visible in the
// body, as far as they are there. Archives store bodies unpacked without changing the head, and heads declare
// compression that servers did not do. Brotli and raw DEFLATE, which have no signature, are removed if they decode. If
// nothing can be decoded, there is a reason.
UnpackedBody decode_http_body(const HttpHead& head, std::string_view body, std::size_t most_bytes);

// Wraps a page that was not archived as a response. `is_utf8`: whatever the page declares. A response saved with its
// head, as by `curl -i`, is taken as that; of several, the last.
std::string as_http_response(std::string_view page, bool is_utf8);

}  // namespace teratron
