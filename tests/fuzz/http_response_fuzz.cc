// A saved HTTP response: its head, chunks, and gzip, zlib, brotli and zstd.
#include "corpus/extract/body_kind.h"
#include "corpus/extract/http_response.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  constexpr std::size_t kMost = std::size_t{1} << 22;
  if (const auto head = parse_http_head(input)) {
    require(head->bytes <= input.size(), "the head is within the response");
    const UnpackedBody body = decode_http_body(*head, input.substr(head->bytes), kMost);
    require(body.bytes.size() <= kMost, "a body is no larger than allowed");
    can_be_text(body.bytes);
  }
  as_http_response(input, true);
}
