#include "base/host/copy_past_caches.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/error.h"

namespace teratron {

void copy_past_caches(std::span<std::byte> to, std::span<const std::byte> from) {
  check(from.size() <= to.size(), "a copy has room");
  std::byte* target = to.data();
  const auto copy = [&](std::size_t bytes) {
    if (bytes > 0) std::memcpy(target, from.data(), bytes);
    target += bytes, from = from.subspan(bytes);
  };
#if defined(__SSE2__)
  constexpr std::size_t kLine = 64, kWord = sizeof(__m128i);
  copy(std::min(from.size(), (kLine - reinterpret_cast<std::uintptr_t>(target) % kLine) % kLine));
  const std::size_t lines = from.size() / kLine * kLine;
  for (std::size_t at = 0; at < lines; at += kWord) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(target + at),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from.data() + at)));
  }
  _mm_sfence();  // other threads see it in the order in which they synchronise, as all other memory
  target += lines, from = from.subspan(lines);
#endif
  copy(from.size());
}

}  // namespace teratron
