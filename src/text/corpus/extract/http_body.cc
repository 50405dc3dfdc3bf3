// The body of a response without chunks and compression.
#include <algorithm>
#include <array>
#include <utility>

#include "corpus/extract/body_kind.h"
#include "corpus/extract/http_response.h"

namespace teratron {
namespace {

constexpr int kMostLayers = 8;  // of chunks and compression
constexpr auto kKnownEncodings =
    std::to_array<std::string_view>({"gzip", "x-gzip", "deflate", "br", "zstd", "none", "utf-8", "binary", "8bit"});

class BodyDecoder {
 public:
  BodyDecoder(std::string_view body, std::size_t most) : most_(most) { out_.bytes = body; }

  UnpackedBody decode(const HttpHead& head) {
    if (head.is_chunked) take(join_chunks(out_.bytes, most_));
    join_chunks_that_are_seen();
    unpack_what_is_seen();
    for (auto name = head.encodings.rbegin(); name != head.encodings.rend() && goes_on(); ++name) {
      if (*name == "br") unpack_said(unpack_brotli);
      if (*name == "deflate") unpack_said(unpack_raw_deflate);
      unpack_what_is_seen();
    }
    if (goes_on() && !is_known()) unpack_unseen(head);
    if (goes_on() && out_.bytes.size() > most_) return too_large(most_);
    return std::move(out_);
  }

 private:
  using Unpack = UnpackedBody (*)(std::string_view, std::size_t);

  bool goes_on() const { return out_.reason.empty(); }
  bool is_known() const { return can_be_text(out_.bytes) || !file_format_of(out_.bytes).empty(); }

  // The first flaw stays: data cut outside are also cut inside.
  void take(UnpackedBody inner) {
    if (!out_.flaw.empty()) inner.flaw = std::move(out_.flaw);
    out_ = std::move(inner);
  }

  void join_chunks_that_are_seen() {
    for (int i = 0; i < kMostLayers && goes_on() && begins_as_chunks(out_.bytes); ++i) {
      take(join_chunks(out_.bytes, most_));
    }
  }

  // Removes compression, and chunks inside it.
  void unpack_what_is_seen() {
    for (int i = 0; i < kMostLayers && goes_on(); ++i, join_chunks_that_are_seen()) {
      switch (packing_of(out_.bytes)) {
        case Packing::kNone: return;
        case Packing::kGzip: take(unpack_gzip(out_.bytes, most_)); break;
        case Packing::kZstd: take(unpack_zstd(out_.bytes, most_)); break;
        case Packing::kZlib: {  // two bytes are weaker evidence than the other magic numbers
          UnpackedBody inner = unpack_zlib(out_.bytes, most_);
          if (!inner.is_whole() && inner.reason != "too large" && is_known()) return;
          take(std::move(inner));
          break;
        }
      }
    }
  }

  // Removes a compression that the head names and that cannot be seen. If it does not decode, the body may be text, or
  // compressed otherwise.
  void unpack_said(Unpack unpack) {
    constexpr std::size_t kEnoughText = 32;
    if (out_.bytes.empty()) return;
    UnpackedBody inner = unpack(out_.bytes, most_);
    const bool is_part = !is_known() && inner.bytes.size() >= kEnoughText && can_be_text(inner.bytes);
    if (inner.is_whole() || is_part || inner.reason == "too large") return take(std::move(inner));
    failed_ = bad_http(inner.reason.empty() ? "damaged compression" : std::move(inner.detail));
  }

  // Tries the compressions that the head might have named.
  void unpack_unseen(const HttpHead& head) {
    for (const Unpack unpack : {unpack_brotli, unpack_raw_deflate}) {
      UnpackedBody inner = unpack(out_.bytes, most_);
      const bool is_something = can_be_text(inner.bytes) || packing_of(inner.bytes) != Packing::kNone;
      if (!inner.is_whole() || !is_something || inner.bytes.empty()) continue;
      take(std::move(inner));
      return unpack_what_is_seen();
    }
    const auto unknown = std::ranges::find_if(head.encodings, [](const std::string& name) {
      return std::ranges::find(kKnownEncodings, name) == kKnownEncodings.end();
    });
    if (!failed_.reason.empty()) {
      out_ = std::move(failed_);
    } else if (unknown != head.encodings.end()) {
      out_ = {.bytes = {}, .flaw = {}, .reason = "encoding", .detail = "the body is compressed with " + *unknown};
    }
  }

  std::size_t most_;
  UnpackedBody failed_;  // with the reason, if a named compression did not decode
  UnpackedBody out_;
};

}  // namespace

UnpackedBody decode_http_body(const HttpHead& head, std::string_view body, std::size_t most_bytes) {
  return BodyDecoder(body, most_bytes).decode(head);
}

}  // namespace teratron
