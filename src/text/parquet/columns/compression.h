// Decompression of pages.
#pragma once

#include <span>
#include <string_view>

#include "parquet/file/footer.h"

namespace teratron::parquet {

// Decompresses `packed` to fill `to`. Damaged: other data, or another size.
void decompress(Codec codec, std::string_view packed, std::span<char> to);

// The most bytes that `packed` bytes can decompress to, so that a few bytes cannot ask for much memory. Unsupported:
// LZO, and LZ4 in Hadoop's frames, which the format has deprecated.
std::size_t most_decompressed(Codec codec, std::size_t packed);

}  // namespace teratron::parquet
