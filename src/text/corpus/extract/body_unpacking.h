// Compressed bodies and bodies in chunks, whole, cut short or damaged. What can be had of them is given.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace teratron {

struct UnpackedBody {
  std::string bytes;
  std::string flaw;            // why `bytes` may be less than there was: "compression cut short"; empty: it is whole
  std::string reason, detail;  // why there is none: "bad http", "encoding" or "too large"; empty: there is one
  bool is_whole() const { return flaw.empty() && reason.empty(); }
};
UnpackedBody bad_http(std::string detail);
UnpackedBody too_large(std::size_t most_bytes);

// RFC 1952, all members; RFC 1950; RFC 1951; RFC 7932; RFC 8878, all frames. At most most_bytes are decoded. Data that
// are cut short give what they hold to there. What follows the end of the data is left out.
UnpackedBody unpack_gzip(std::string_view body, std::size_t most_bytes);
UnpackedBody unpack_zlib(std::string_view body, std::size_t most_bytes);
UnpackedBody unpack_raw_deflate(std::string_view body, std::size_t most_bytes);
UnpackedBody unpack_brotli(std::string_view body, std::size_t most_bytes);
UnpackedBody unpack_zstd(std::string_view body, std::size_t most_bytes);

// RFC 9112, section 7.1; lines may end in LF alone, extensions and trailers are left out. A body that does not begin
// with a chunk is given as it is: many archives store bodies without the chunks that their heads tell of.
UnpackedBody join_chunks(std::string_view body, std::size_t most_bytes);

// Whether `body` begins with a whole chunk, and another one or nothing behind it.
bool begins_as_chunks(std::string_view body);

}  // namespace teratron
