#include "checkpoint/safetensors/tensor_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/float_types.h"

namespace teratron {
namespace {

template <class To, class From>
void convert(std::byte* to, const std::byte* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(value), sizeof(value));
    const To converted = static_cast<To>(value);
    std::memcpy(to + i * sizeof(converted), &converted, sizeof(converted));
  }
}

template <std::size_t kBytes>
void transpose_block(std::byte* to, const std::byte* from, std::size_t rows, std::size_t columns, std::size_t begin,
                     std::size_t end) {
  for (std::size_t row = 0; row < rows; ++row) {
    const std::byte* run = from + (row * columns + begin) * kBytes;
    for (std::size_t column = 0; column < end - begin; ++column) {
      std::memcpy(to + (column * rows + row) * kBytes, run + column * kBytes, kBytes);
    }
  }
}

// Elements of any size, columns [begin, end) of a matrix of them.
void copy_block(std::byte* to, std::span<const std::byte> bytes, std::size_t rows, std::size_t columns,
                std::size_t begin, std::size_t end) {
  const std::size_t element = bytes.size() / (rows * columns);
  for (std::size_t column = begin; column < end; ++column) {
    for (std::size_t row = 0; row < rows; ++row, to += element) {
      std::memcpy(to, bytes.data() + (row * columns + column) * element, element);
    }
  }
}

}  // namespace

void stream(std::span<const std::byte> bytes, const ByteSink& sink) {
  for (std::size_t begin = 0; begin < bytes.size(); begin += kPieceBytes) {
    sink(bytes.subspan(begin, std::min(kPieceBytes, bytes.size() - begin)));
  }
}

ByteSink appending_sink(std::vector<std::byte>& to) {
  return [&to](std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); };
}

void stream_transposed(std::span<const std::byte> bytes, std::int64_t rows, std::int64_t columns,
                       const ByteSink& sink) {
  if (rows == 1 || columns == 1) return stream(bytes, sink);
  if (bytes.empty()) return;
  const std::int64_t element_bytes = static_cast<std::int64_t>(bytes.size()) / (rows * columns);
  check_equal(static_cast<std::int64_t>(bytes.size()), rows * columns * element_bytes, "bytes of the matrix");
  const auto from_rows = static_cast<std::size_t>(rows), from_columns = static_cast<std::size_t>(columns);
  const std::size_t row_bytes = from_rows * static_cast<std::size_t>(element_bytes);  // of a row passed on
  const std::size_t block = std::max<std::size_t>(1, kPieceBytes / row_bytes);
  std::vector<std::byte> piece(std::min(block, from_columns) * row_bytes);
  for (std::size_t begin = 0; begin < from_columns; begin += block) {
    const std::size_t end = std::min(begin + block, from_columns);
    switch (element_bytes) {
      case 8: transpose_block<8>(piece.data(), bytes.data(), from_rows, from_columns, begin, end); break;
      case 4: transpose_block<4>(piece.data(), bytes.data(), from_rows, from_columns, begin, end); break;
      case 2: transpose_block<2>(piece.data(), bytes.data(), from_rows, from_columns, begin, end); break;
      default: copy_block(piece.data(), bytes, from_rows, from_columns, begin, end);
    }
    sink(std::span(piece).first((end - begin) * row_bytes));
  }
}

void convert_floats(std::span<std::byte> to, DType to_dtype, std::span<const std::byte> from, DType from_dtype) {
  const std::size_t count = from.size() / static_cast<std::size_t>(size_of(from_dtype));
  check_equal(from.size(), count * static_cast<std::size_t>(size_of(from_dtype)), "bytes to convert");
  check_equal(to.size(), count * static_cast<std::size_t>(size_of(to_dtype)), "room for the converted bytes");
  if (count == 0) return;
  if (to_dtype == from_dtype) {
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  visit_floating(from_dtype, [&]<class From>(ElementType<From>) {
    visit_floating(to_dtype, [&]<class To>(ElementType<To>) { convert<To, From>(to.data(), from.data(), count); });
  });
}

ByteSink converting_sink(DType from, DType to, ByteSink sink) {
  if (from == to) return sink;
  return [from, to, next = std::move(sink),
          converted = std::vector<std::byte>()](std::span<const std::byte> bytes) mutable {
    converted.resize(bytes.size() / static_cast<std::size_t>(size_of(from)) * static_cast<std::size_t>(size_of(to)));
    convert_floats(converted, to, bytes, from);
    next(converted);
  };
}

}  // namespace teratron
