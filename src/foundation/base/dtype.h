// Element types of tensors and files, and the conversions of the two 16-bit floating point formats.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace teratron {

// The last two are weights in blocks, an element being a tile of 16 rows by 32 columns (tensor/weight_tiles.h).
enum class DType : std::uint8_t { kF64, kF32, kBF16, kF16, kI64, kI32, kU16, kU8, kQ8Tile, kQ4Tile };

constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64: return 8;
    case DType::kF32:
    case DType::kI32: return 4;
    case DType::kBF16:
    case DType::kF16:
    case DType::kU16: return 2;
    case DType::kU8: return 1;
    case DType::kQ8Tile: return 544;
    case DType::kQ4Tile: return 288;
  }
  return 0;
}

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kF64: return "f64";
    case DType::kF32: return "f32";
    case DType::kBF16: return "bf16";
    case DType::kF16: return "f16";
    case DType::kI64: return "i64";
    case DType::kI32: return "i32";
    case DType::kU16: return "u16";
    case DType::kU8: return "u8";
    case DType::kQ8Tile: return "q8_0";
    case DType::kQ4Tile: return "q4_0";
  }
  return "?";
}

constexpr bool is_floating(DType dtype) { return dtype <= DType::kF16; }
constexpr bool is_tiles(DType dtype) { return dtype >= DType::kQ8Tile; }

// Conversions of 16-bit values, which are passed as their bits. Arithmetic happens in fp32.
inline float bf16_to_float(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

// Rounds to nearest even; NaN stays NaN.
inline std::uint16_t float_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

inline float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000U} << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fU;
  const std::uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0x1fU) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
  const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);  // zero and subnormals, exact
  return sign ? -magnitude : magnitude;
}

// Rounds to nearest even; overflow becomes infinity.
inline std::uint16_t float_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // rounds above 65504
  if (magnitude < 0x38800000U) {                                                    // below 2^-14: a multiple of 2^-24
    const float scaled = std::ldexp(std::bit_cast<float>(magnitude), 24);
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(std::nearbyint(scaled)));
  }
  const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
}

}  // namespace teratron
