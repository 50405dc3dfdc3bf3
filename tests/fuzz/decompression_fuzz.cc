// gzip and zstd files.
#include "base/files/decompression.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) { read_decompressed(put("a", input), std::size_t{16} << 20); }
