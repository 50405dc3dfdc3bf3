// Streams of tensor bytes: transposed, cut in pieces, converted.
#include "checkpoint/safetensors/tensor_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/philox.h"

namespace teratron::testing {
namespace {

template <class T>
std::vector<T> transposed_by_stream(const std::vector<T>& matrix, std::int64_t rows, std::int64_t columns) {
  // One byte in front: what is mapped from a file need not be aligned.
  std::vector<std::byte> unaligned(1 + matrix.size() * sizeof(T));
  if (!matrix.empty()) std::memcpy(unaligned.data() + 1, matrix.data(), matrix.size() * sizeof(T));
  std::vector<std::byte> out;
  std::size_t pieces = 0;
  stream_transposed(std::span(unaligned).subspan(1), rows, columns, [&](std::span<const std::byte> piece) {
    EXPECT_LE(piece.size(), std::max(kPieceBytes, static_cast<std::size_t>(rows) * sizeof(T)));
    out.insert(out.end(), piece.begin(), piece.end());
    ++pieces;
  });
  EXPECT_GE(pieces * kPieceBytes, std::min(out.size(), std::size_t{1}));
  std::vector<T> values(out.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), out.data(), out.size());
  return values;
}

template <class T>
void check_transposed(std::int64_t rows, std::int64_t columns) {
  std::vector<T> matrix(static_cast<std::size_t>(rows * columns)), expected(matrix.size());
  RandomSequence random({.seed = 3});
  for (T& value : matrix) value = static_cast<T>(random.next_u32());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      expected[static_cast<std::size_t>(column * rows + row)] =
          matrix[static_cast<std::size_t>(row * columns + column)];
    }
  }
  EXPECT_EQ(transposed_by_stream(matrix, rows, columns), expected) << rows << " x " << columns;
}

TEST(TensorStream, TransposingEqualsTheDefinition) {
  for (const std::int64_t rows : {0, 1, 2, 7, 64}) {
    for (const std::int64_t columns : {0, 1, 3, 31}) {
      check_transposed<std::uint16_t>(rows, columns);
      check_transposed<std::uint32_t>(rows, columns);
      check_transposed<std::uint64_t>(rows, columns);
    }
  }
  check_transposed<std::uint32_t>(1031, 2053);  // several pieces
  check_transposed<std::uint64_t>(600'000, 2);  // rows longer than a piece
}

TEST(TensorStream, PiecesMakeUpTheWhole) {
  std::vector<std::byte> bytes(2 * kPieceBytes + 5);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 >> 7);
  std::vector<std::byte> out;
  stream(bytes, [&](std::span<const std::byte> piece) {
    EXPECT_LE(piece.size(), kPieceBytes);
    out.insert(out.end(), piece.begin(), piece.end());
  });
  EXPECT_TRUE(out == bytes);
}

template <class To, class From>
To converted(From value, DType to_dtype, DType from_dtype) {
  To to{};
  convert_floats(std::as_writable_bytes(std::span(&to, 1)), to_dtype, std::as_bytes(std::span(&value, 1)), from_dtype);
  return to;
}

TEST(ConvertFloats, SixteenBitValuesBecomeTheNumbersTheyStandFor) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const int exponent = static_cast<int>(half >> 10 & 31);
    if (exponent != 31) {
      const double mantissa = (exponent == 0 ? 0 : 1024) + (half & 1023);
      const double value = std::ldexp(half >> 15 != 0 ? -mantissa : mantissa, std::max(exponent, 1) - 25);
      EXPECT_EQ((converted<float>(half, DType::kF32, DType::kF16)), static_cast<float>(value));
      EXPECT_EQ((converted<double>(half, DType::kF64, DType::kF16)), value);
      EXPECT_EQ((converted<std::uint16_t>(value, DType::kF16, DType::kF64)), half);
    }
    const auto brain = converted<float>(half, DType::kF32, DType::kBF16);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(brain) >> 16, bits) << "bf16 is the upper half of fp32";
    if (!std::isnan(brain)) {
      EXPECT_EQ((converted<std::uint16_t>(brain, DType::kBF16, DType::kF32)), half);
    }
  }
}

TEST(ConvertFloats, DoubleAndSingleAreRoundedToNearest) {
  EXPECT_EQ((converted<float>(0.1, DType::kF32, DType::kF64)), 0.1F);
  EXPECT_EQ((converted<double>(0.1F, DType::kF64, DType::kF32)), static_cast<double>(0.1F));
  EXPECT_EQ((converted<float>(1e300, DType::kF32, DType::kF64)), std::numeric_limits<float>::infinity());
}

TEST(ConvertFloats, TheSameTypeKeepsEveryBit) {
  const std::uint32_t signalling_nan = 0x7f800001U;
  EXPECT_EQ((converted<std::uint32_t>(signalling_nan, DType::kF32, DType::kF32)), signalling_nan);
}

TEST(ConvertFloats, ASinkConvertsPieceByPiece) {
  const std::vector<float> values = {1, -2.5F, 3e-5F, 4};
  std::vector<double> out;
  const ByteSink sink = converting_sink(DType::kF32, DType::kF64, [&](std::span<const std::byte> piece) {
    for (std::size_t i = 0; i < piece.size(); i += 8) {
      double value = 0;
      std::memcpy(&value, piece.data() + i, 8);
      out.push_back(value);
    }
  });
  sink(std::as_bytes(std::span(values).first(1)));
  sink(std::as_bytes(std::span(values).last(3)));
  EXPECT_EQ(out, std::vector<double>(values.begin(), values.end()));
}

}  // namespace
}  // namespace teratron::testing
