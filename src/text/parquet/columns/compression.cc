#include "parquet/columns/compression.h"

#include <brotli/decode.h>
#include <lz4.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include <new>

#include "parquet/file/fault.h"

namespace teratron::parquet {
namespace {

[[noreturn]] void throw_undecodable(const char* name) {
  throw_damaged("a page of it is no {} data, or of another size than it says", name);
}

bool inflate_all(std::string_view packed, std::span<char> to) {
  z_stream stream{};
  constexpr int kGzipOrZlib = 15 + 32;  // the largest window
  if (::inflateInit2(&stream, kGzipOrZlib) != Z_OK) throw std::bad_alloc();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());  // pages have less than 2 GiB
  stream.next_out = reinterpret_cast<Bytef*>(to.data());
  stream.avail_out = static_cast<uInt>(to.size());
  int result = ::inflate(&stream, Z_FINISH);
  while (result == Z_STREAM_END && stream.avail_in > 0 && stream.avail_out > 0) {  // the next member
    ::inflateReset(&stream);
    result = ::inflate(&stream, Z_FINISH);
  }
  const bool is_full = stream.avail_out == 0;
  ::inflateEnd(&stream);
  return result == Z_STREAM_END && is_full;
}

bool decompress_snappy(std::string_view packed, std::span<char> to) {
  std::size_t size = 0;
  if (::snappy_uncompressed_length(packed.data(), packed.size(), &size) != SNAPPY_OK || size != to.size()) return false;
  return ::snappy_uncompress(packed.data(), packed.size(), to.data(), &size) == SNAPPY_OK;
}

bool decompress_brotli(std::string_view packed, std::span<char> to) {
  std::size_t size = to.size();
  const auto result = ::BrotliDecoderDecompress(packed.size(), reinterpret_cast<const std::uint8_t*>(packed.data()),
                                                &size, reinterpret_cast<std::uint8_t*>(to.data()));
  return result == BROTLI_DECODER_RESULT_SUCCESS && size == to.size();
}

}  // namespace

void decompress(Codec codec, std::string_view packed, std::span<char> to) {
  const auto require = [](bool is_whole, const char* name) {
    if (!is_whole) throw_undecodable(name);
  };
  switch (codec) {
    case Codec::kNone: return require(packed.copy(to.data(), to.size()) == to.size(), "plain");
    case Codec::kSnappy: return require(decompress_snappy(packed, to), "snappy");
    case Codec::kGzip: return require(inflate_all(packed, to), "gzip");
    case Codec::kBrotli: return require(decompress_brotli(packed, to), "brotli");
    case Codec::kZstd:
      return require(::ZSTD_decompress(to.data(), to.size(), packed.data(), packed.size()) == to.size(), "zstd");
    case Codec::kLz4: {
      const int got =
          ::LZ4_decompress_safe(packed.data(), to.data(), static_cast<int>(packed.size()), static_cast<int>(to.size()));
      return require(got >= 0 && static_cast<std::size_t>(got) == to.size(), "lz4");
    }
    case Codec::kLzo:
    case Codec::kHadoopLz4: throw_undecodable("known");  // unreachable: most_decompressed() refuses them
  }
}

// The longest copies of the formats: snappy 64 bytes for 3, deflate 258 for a quarter of a byte, LZ4 255 for 1; a block
// of zstd repeats a byte 128 KiB for 4, and one of brotli, whose head alone takes 77 bits, has 16 MiB.
std::size_t most_decompressed(Codec codec, std::size_t packed) {
  constexpr std::size_t kSmall = 1024;
  switch (codec) {
    case Codec::kNone: return packed;
    case Codec::kSnappy: return kSmall + packed * 22;
    case Codec::kGzip: return kSmall + packed * 1032;
    case Codec::kLz4: return kSmall + packed * 256;
    case Codec::kZstd: return packed * (std::size_t{32} << 10);
    case Codec::kBrotli: return packed * (std::size_t{2} << 20);
    case Codec::kLzo: throw_unsupported("columns compressed by LZO");
    case Codec::kHadoopLz4: throw_unsupported("columns compressed by LZ4 in Hadoop's frames");
  }
  return 0;
}

}  // namespace teratron::parquet
