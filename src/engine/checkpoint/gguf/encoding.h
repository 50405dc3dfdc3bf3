// Values of a tensor as GGUF has them: in fp32, in 16 bits rounded once to nearest even, or in blocks.
//
// Q8_0: 32 values of a row are a step in fp16 and 32 whole numbers (q8_block in tensor/weight_tiles.h). Q4_0
// has 16 bytes for them (q4_block): the first 16 values in the low halves, the others in the high ones, each 8 larger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "checkpoint/gguf/gguf_file.h"
#include "checkpoint/safetensors/tensor_stream.h"

namespace teratron {

constexpr std::size_t kBlockValues = 32, kQ8Bytes = 34, kQ4Bytes = 18;  // of a block

// The largest magnitude that a type holds, after rounding.
double largest_of(GgufType type);

// A sink that takes values of type `from` and passes them on as `to`. For blocks, pieces hold whole ones.
ByteSink encoding_sink(DType from, GgufType to, ByteSink sink);

}  // namespace teratron
