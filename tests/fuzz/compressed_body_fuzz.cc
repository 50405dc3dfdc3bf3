// A body in one compression, which the first byte chooses.
#include <array>

#include "corpus/extract/http_response.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  constexpr std::array kUnpack = {unpack_gzip,   unpack_zlib, unpack_raw_deflate,
                                  unpack_brotli, unpack_zstd, join_chunks};
  constexpr std::size_t kMost = std::size_t{1} << 20;
  const auto unpack = kUnpack[take_byte(input) % kUnpack.size()];
  require(unpack(input, kMost).bytes.size() <= kMost, "a body is no larger than allowed");
  begins_as_chunks(input);
}
