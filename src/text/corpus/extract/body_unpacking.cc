#include "corpus/extract/http_response.h"

#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "base/ascii.h"
#include "base/error.h"

namespace teratron {
namespace {

enum class Progress { kGoesOn, kPartDone, kDone, kWrongChecksum, kNeedsMore, kDamaged };

// Calls decode(room, bytes made) until the data end. Parts are members of gzip: if a later one is damaged, the earlier
// ones stand.
template <class Decode>
UnpackedBody decode_in_pieces(std::size_t most, const Decode& decode) {
  constexpr std::size_t kPiece = std::size_t{64} << 10;
  UnpackedBody out;
  std::size_t parts_end = 0;
  while (true) {
    const std::size_t used = out.bytes.size();
    out.bytes.resize(used + kPiece);
    std::size_t made = 0;
    const Progress progress = decode(std::span<char>(out.bytes).subspan(used), made);
    out.bytes.resize(used + made);
    if (out.bytes.size() > most) return too_large(most);
    if (progress == Progress::kGoesOn) continue;
    if (progress == Progress::kPartDone) {
      parts_end = out.bytes.size();
      continue;
    }
    if (progress == Progress::kDamaged) out.bytes.resize(parts_end);
    if (progress == Progress::kDone) return out;
    if (out.bytes.empty()) {
      return bad_http(progress == Progress::kDamaged ? "damaged compression" : "the compressed body is cut short");
    }
    out.flaw = progress == Progress::kWrongChecksum ? "wrong checksum of the compression" : "compression cut short";
    return out;
  }
}

// `window_bits`: as zlib's, which select one of its formats.
UnpackedBody unpack_with_zlib(std::string_view body, int window_bits, std::size_t most) {
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
    if (result == Z_OK) return Progress::kGoesOn;
    if (result == Z_STREAM_END) {
      const bool another = window_bits > MAX_WBITS && stream.avail_in > 1 && stream.next_in[0] == 0x1F &&
                           stream.next_in[1] == 0x8B && ::inflateReset(&stream) == Z_OK;
      return another ? Progress::kPartDone : Progress::kDone;
    }
    const std::string_view message = stream.msg == nullptr ? "" : stream.msg;
    if (message == "incorrect data check" || message == "incorrect length check") return Progress::kWrongChecksum;
    return result == Z_BUF_ERROR && stream.avail_in == 0 ? Progress::kNeedsMore : Progress::kDamaged;
  });
}

// The size of the chunk at the beginning of `body`, and the length of the line with the size.
struct ChunkHead {
  std::uint64_t size = 0;
  std::size_t bytes = 0;  // 0: no head of a chunk
};
ChunkHead chunk_head(std::string_view body) {
  constexpr std::size_t kLongestLine = 4096;
  const std::size_t line_end = body.substr(0, kLongestLine).find('\n');
  if (line_end == body.npos) return {};
  const std::string_view whole = body.substr(0, line_end),
                         line = without_ascii_spaces(whole.substr(0, whole.find(';')));
  ChunkHead head;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), head.size, 16);
  if (line.empty() || error != std::errc() || end != line.data() + line.size()) return {};
  head.bytes = line_end + 1;
  return head;
}

std::size_t line_end_at(std::string_view body) { return body.starts_with("\r\n") ? 2 : body.starts_with('\n') ? 1 : 0; }

}  // namespace

UnpackedBody bad_http(std::string detail) {
  return {.bytes = {}, .flaw = {}, .reason = "bad http", .detail = std::move(detail)};
}
UnpackedBody too_large(std::size_t most_bytes) {
  return {.bytes = {}, .flaw = {}, .reason = "too large", .detail = fmt::format("more than {} bytes", most_bytes)};
}

UnpackedBody unpack_gzip(std::string_view body, std::size_t most_bytes) {
  return unpack_with_zlib(body, MAX_WBITS + 16, most_bytes);
}
UnpackedBody unpack_zlib(std::string_view body, std::size_t most_bytes) {
  return unpack_with_zlib(body, MAX_WBITS, most_bytes);
}
UnpackedBody unpack_raw_deflate(std::string_view body, std::size_t most_bytes) {
  return unpack_with_zlib(body, -MAX_WBITS, most_bytes);
}

UnpackedBody unpack_brotli(std::string_view body, std::size_t most_bytes) {
  const std::unique_ptr<BrotliDecoderState, void (*)(BrotliDecoderState*)> state(
      ::BrotliDecoderCreateInstance(nullptr, nullptr, nullptr), ::BrotliDecoderDestroyInstance);
  if (!state) throw std::bad_alloc();
  auto next = reinterpret_cast<const std::uint8_t*>(body.data());
  std::size_t left = body.size();
  return decode_in_pieces(most_bytes, [&](std::span<char> room, std::size_t& made) {
    auto to = reinterpret_cast<std::uint8_t*>(room.data());
    std::size_t free = room.size();
    const BrotliDecoderResult result = ::BrotliDecoderDecompressStream(state.get(), &left, &next, &free, &to, nullptr);
    made = room.size() - free;
    switch (result) {
      case BROTLI_DECODER_RESULT_SUCCESS: return left == 0 ? Progress::kDone : Progress::kNeedsMore;
      case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT: return Progress::kGoesOn;
      case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT: return Progress::kNeedsMore;
      default: return Progress::kDamaged;
    }
  });
}

UnpackedBody unpack_zstd(std::string_view body, std::size_t most_bytes) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(::ZSTD_createDCtx(), ::ZSTD_freeDCtx);
  if (!context) throw std::bad_alloc();
  ZSTD_inBuffer in{body.data(), body.size(), 0};
  return decode_in_pieces(most_bytes, [&](std::span<char> room, std::size_t& made) {
    ZSTD_outBuffer out{room.data(), room.size(), 0};
    const std::size_t left = ::ZSTD_decompressStream(context.get(), &out, &in);
    made = out.pos;
    if (::ZSTD_isError(left) != 0) {
      return ::ZSTD_getErrorCode(left) == ZSTD_error_checksum_wrong ? Progress::kWrongChecksum : Progress::kDamaged;
    }
    if (left == 0) return in.pos == in.size ? Progress::kDone : Progress::kPartDone;  // another frame follows
    return in.pos == in.size && out.pos < out.size ? Progress::kNeedsMore : Progress::kGoesOn;
  });
}

UnpackedBody join_chunks(std::string_view body, std::size_t most_bytes) {
  const std::string_view whole = body;
  UnpackedBody out;
  const auto flawed = [&](const char* flaw) {
    out.flaw = flaw;
    return std::move(out);
  };
  for (bool is_first = true;; is_first = false) {
    const ChunkHead head = chunk_head(body);
    if (head.bytes == 0 && is_first) return {.bytes = std::string(whole), .flaw = {}, .reason = {}, .detail = {}};
    if (head.bytes == 0) return flawed(body.size() < 20 ? "no last chunk" : "wrong size of a chunk");
    body.remove_prefix(head.bytes);
    if (head.size == 0) return out;
    if (head.size <= body.size() && out.bytes.size() + head.size > most_bytes) return too_large(most_bytes);
    out.bytes += body.substr(0, head.size);
    if (head.size > body.size()) return flawed("cut in a chunk");
    body.remove_prefix(head.size);
    if (body.empty()) return flawed("no last chunk");
    const std::size_t line_end = line_end_at(body);
    if (line_end == 0 && is_first) return {.bytes = std::string(whole), .flaw = {}, .reason = {}, .detail = {}};
    if (line_end == 0) return flawed("wrong size of a chunk");
    body.remove_prefix(line_end);
  }
}

bool begins_as_chunks(std::string_view body) {
  const ChunkHead first = chunk_head(body);
  if (first.size == 0 || first.size >= body.size() - first.bytes) return false;
  body.remove_prefix(first.bytes + first.size);
  const std::size_t line_end = line_end_at(body);
  body.remove_prefix(line_end);
  return line_end > 0 && (body.empty() || chunk_head(body).bytes > 0);
}

}  // namespace teratron
