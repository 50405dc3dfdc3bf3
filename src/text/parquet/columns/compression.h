// Decompression of pages.
#pragma once

#include <span>
#include <string_view>

#include "parquet/file/footer.h"

namespace teratron::parquet {

// Decompresses `packed` to `to`, which it fills. Damaged: it does not.
void decompress(Codec codec, std::string_view packed, std::span<char> to);

// The most bytes that `packed` bytes may stand for, so that a few bytes cannot ask for much memory. Unsupported: LZO,
// and LZ4 in Hadoop's frames, which formats no longer has.
std::size_t most_decompressed(Codec codec, std::size_t packed);

}  // namespace teratron::parquet
