// Passing a tensor's bytes on in pieces of a few MB, so that few copies of whole tensors are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/dtype.h"

namespace teratron {

// Takes the bytes of a tensor, in order, in pieces of any size.
using ByteSink = std::function<void(std::span<const std::byte>)>;

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;  // a multiple of every element size

// All of `bytes`, in pieces of kPieceBytes.
void stream(std::span<const std::byte> bytes, const ByteSink& sink);

// A sink that appends to `to`, which must outlive it.
ByteSink appending_sink(std::vector<std::byte>& to);

// A matrix [rows, columns] of equal elements of any size, read from `bytes` (of any alignment) and passed on as
// [columns, rows].
void stream_transposed(std::span<const std::byte> bytes, std::int64_t rows, std::int64_t columns, const ByteSink& sink);

// Floating values of one type as another: rounded once to nearest even, unchanged in every bit
// where the type stays. Both spans may be unaligned; they hold equally many values.
void convert_floats(std::span<std::byte> to, DType to_dtype, std::span<const std::byte> from, DType from_dtype);

// A sink that converts on the way to `sink`; each piece holds whole values.
ByteSink converting_sink(DType from, DType to, ByteSink sink);

}  // namespace teratron
