// Values of a tensor as GGUF has them: in fp32, in 16 bits rounded once to nearest even, or in Q8_0's blocks.
//
// Q8_0: 32 values of a row are a step in fp16 and 32 whole numbers from -127 to 127, each the nearest to a value. The
// step is the smallest in fp16 whose 127-fold reaches the largest of the values, so each is within half a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "checkpoint/gguf/gguf_file.h"
#include "checkpoint/safetensors/tensor_stream.h"

namespace teratron {

constexpr std::size_t kQ8Values = 32, kQ8Bytes = 34;

// The largest magnitude that a type holds, after rounding.
double largest_of(GgufType type);

// A sink that takes values of type `from`, of Q8_0 whole blocks at a time, and passes them on as `to`.
ByteSink encoding_sink(DType from, GgufType to, ByteSink sink);

}  // namespace teratron
