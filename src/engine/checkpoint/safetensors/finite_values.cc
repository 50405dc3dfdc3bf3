#include "checkpoint/safetensors/finite_values.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace teratron {
namespace {

// Infinities and NaNs have all bits of their exponent set: adding the exponent's lowest bit then carries into the sign
// bit, and no sum carries into the next value. So words are tested instead of values. The loop has no early exit, so it
// runs at the speed of memory.
template <class Bits>
bool all_finite(std::span<const std::byte> bytes, Bits exponent) {
  constexpr std::uint64_t kEach = ~std::uint64_t{0} / static_cast<Bits>(~Bits{0});  // one in each value of a word
  using Words [[gnu::vector_size(16)]] = std::uint64_t;
  const Words exponents = Words{} + kEach * exponent,
              ones = Words{} + kEach * static_cast<Bits>(exponent & (~exponent + 1U));
  Words words, sums{};
  std::size_t at = 0;
  for (; at + sizeof(words) <= bytes.size(); at += sizeof(words)) {
    std::memcpy(&words, bytes.data() + at, sizeof(words));
    sums |= (words & exponents) + ones;
  }
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < sizeof(sums) / sizeof(found); ++i) found |= sums[i];
  found &= kEach << (8 * sizeof(Bits) - 1);
  for (; at < bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + at, sizeof(Bits));
    found |= static_cast<std::uint64_t>((bits & exponent) == exponent);
  }
  return found == 0;
}

bool all_finite(std::span<const std::byte> bytes, DType dtype) {
  switch (dtype) {
    case DType::kF64: return all_finite(bytes, std::uint64_t{0x7ff0000000000000});
    case DType::kF32: return all_finite(bytes, std::uint32_t{0x7f800000});
    case DType::kBF16: return all_finite(bytes, std::uint16_t{0x7f80});
    case DType::kF16: return all_finite(bytes, std::uint16_t{0x7c00});
    default: return true;
  }
}

}  // namespace

void FiniteValues::update(std::span<const std::byte> bytes) {
  const auto size = static_cast<std::size_t>(size_of(dtype_));
  if (begun_bytes_ > 0) {
    const std::size_t more = std::min(size - begun_bytes_, bytes.size());
    std::ranges::copy(bytes.first(more), begun_.begin() + static_cast<std::ptrdiff_t>(begun_bytes_));
    begun_bytes_ += more;
    bytes = bytes.subspan(more);
    if (begun_bytes_ < size) return;
    all_ = all_finite(std::span(begun_).first(size), dtype_) && all_;
  }
  begun_bytes_ = bytes.size() % size;
  const std::size_t whole = bytes.size() - begun_bytes_;
  all_ = all_finite(bytes.first(whole), dtype_) && all_;
  std::ranges::copy(bytes.subspan(whole), begun_.begin());
}

void require_finite(std::span<const std::byte> bytes, DType dtype, std::string_view tensor,
                    const std::filesystem::path& folder) {
  if (all_finite(bytes, dtype)) return;
  throw_user_error(
      "the weights in '{}' are not finite: '{}' holds values that are infinite or not a number; the file is damaged, "
      "or the training that wrote it had diverged",
      folder.string(), tensor);
}

}  // namespace teratron
