#include "corpus/extract/http_compression.h"

#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "base/error.h"
#include "corpus/extract/header_lines.h"

namespace teratron {
namespace {

enum class Progress { kGoesOn, kDone, kNeedsMore, kDamaged };

// Calls decode(room, bytes made) until the body has ended. It needs more than there is: the body was cut short.
template <class Decode>
HttpBody decode_in_pieces(std::size_t most, const Decode& decode) {
  constexpr std::size_t kPiece = std::size_t{64} << 10;
  HttpBody out;
  while (true) {
    const std::size_t used = out.bytes.size();
    out.bytes.resize(used + kPiece);
    std::size_t made = 0;
    const Progress progress = decode(std::span<char>(out.bytes).subspan(used), made);
    out.bytes.resize(used + made);
    if (out.bytes.size() > most) return too_large(most);
    if (progress == Progress::kDone) return out;
    if (progress == Progress::kNeedsMore) return bad_http("the compressed body is cut short");
    if (progress == Progress::kDamaged) return bad_http("damaged compression");
  }
}

// `window_bits` as zlib's: which of its formats.
HttpBody inflate_body(std::string_view body, int window_bits, std::size_t most) {
  z_stream stream{};
  if (::inflateInit2(&stream, window_bits) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> owner(&stream, ::inflateEnd);
  if (body.size() > std::numeric_limits<uInt>::max()) return too_large(most);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  stream.avail_in = static_cast<uInt>(body.size());
  return decode_in_pieces(most, [&](std::span<char> room, std::size_t& made) {
    stream.next_out = reinterpret_cast<Bytef*>(room.data());
    stream.avail_out = static_cast<uInt>(room.size());
    const int result = ::inflate(&stream, Z_NO_FLUSH);
    made = room.size() - stream.avail_out;
    if (result == Z_STREAM_END) return Progress::kDone;
    if (result == Z_OK) return Progress::kGoesOn;
    return stream.avail_in == 0 ? Progress::kNeedsMore : Progress::kDamaged;
  });
}

HttpBody decompress_brotli(std::string_view body, std::size_t most) {
  const std::unique_ptr<BrotliDecoderState, void (*)(BrotliDecoderState*)> state(
      ::BrotliDecoderCreateInstance(nullptr, nullptr, nullptr), ::BrotliDecoderDestroyInstance);
  if (!state) throw std::bad_alloc();
  auto next = reinterpret_cast<const std::uint8_t*>(body.data());
  std::size_t left = body.size();
  return decode_in_pieces(most, [&](std::span<char> room, std::size_t& made) {
    auto to = reinterpret_cast<std::uint8_t*>(room.data());
    std::size_t free = room.size();
    const BrotliDecoderResult result = ::BrotliDecoderDecompressStream(state.get(), &left, &next, &free, &to, nullptr);
    made = room.size() - free;
    switch (result) {
      case BROTLI_DECODER_RESULT_SUCCESS: return Progress::kDone;
      case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT: return Progress::kGoesOn;
      case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT: return Progress::kNeedsMore;
      default: return Progress::kDamaged;
    }
  });
}

HttpBody decompress_zstd(std::string_view body, std::size_t most) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(::ZSTD_createDCtx(), ::ZSTD_freeDCtx);
  if (!context) throw std::bad_alloc();
  ZSTD_inBuffer in{body.data(), body.size(), 0};
  return decode_in_pieces(most, [&](std::span<char> room, std::size_t& made) {
    ZSTD_outBuffer out{room.data(), room.size(), 0};
    const std::size_t left = ::ZSTD_decompressStream(context.get(), &out, &in);
    made = out.pos;
    if (::ZSTD_isError(left) != 0) return Progress::kDamaged;
    if (left == 0 && in.pos == in.size) return Progress::kDone;  // else another frame follows
    return in.pos == in.size && out.pos < out.size ? Progress::kNeedsMore : Progress::kGoesOn;
  });
}

bool looks_like_a_page(std::string_view body) { return without_spaces(body).starts_with('<'); }

}  // namespace

HttpBody bad_http(std::string detail) { return {.reason = "bad http", .detail = std::move(detail)}; }
HttpBody too_large(std::size_t most_bytes) {
  return {.reason = "too large", .detail = fmt::format("more than {} bytes", most_bytes)};
}

HttpBody decompress_body(std::string_view body, const std::string& encoding, std::size_t most_bytes) {
  constexpr int kLargestWindow = 15, kGzip = 16, kRaw = -1;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(body[i]); };
  if (encoding == "gzip" || encoding == "x-gzip") {
    if (!body.starts_with("\x1F\x8B")) return {.bytes = std::string(body)};
    return inflate_body(body, kLargestWindow + kGzip, most_bytes);
  }
  if (encoding == "br") {  // whose streams can begin with any byte
    HttpBody decoded = decompress_brotli(body, most_bytes);
    if (decoded.reason == "bad http" && looks_like_a_page(body)) return {.bytes = std::string(body)};
    return decoded;
  }
  if (looks_like_a_page(body)) return {.bytes = std::string(body)};
  if (encoding == "deflate") {
    // With zlib's header, as it should be, or without.
    const bool has_header = body.size() >= 2 && (byte(0) & 0xF) == 8 && (byte(0) * 256 + byte(1)) % 31 == 0;
    return inflate_body(body, has_header ? kLargestWindow : kRaw * kLargestWindow, most_bytes);
  }
  if (encoding == "zstd") return decompress_zstd(body, most_bytes);
  return {.reason = "encoding", .detail = "the body is compressed with " + encoding};
}

}  // namespace teratron
