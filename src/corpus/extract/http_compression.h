// What servers compress pages by.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

struct HttpBody {
  std::string bytes;           // without chunks and compression
  std::string reason, detail;  // why there is none: "bad http", "encoding" or "too large"; empty: there is one
};
HttpBody bad_http(std::string detail);
HttpBody too_large(std::size_t most_bytes);

// `encoding` is a name of Content-Encoding in small letters: gzip, deflate, br and zstd are known (RFC 9110, 7932,
// 8878). At most most_bytes are decoded. A body that is not compressed, whatever its name says, comes back as it is:
// some crawlers store it decompressed and leave the head as it was.
HttpBody decompress_body(std::string_view body, const std::string& encoding, std::size_t most_bytes);

}  // namespace teratron
