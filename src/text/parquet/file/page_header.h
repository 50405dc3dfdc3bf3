// The head of a page.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace teratron::parquet {

enum class PageType : std::uint8_t { kData, kIndex, kDictionary, kDataV2 };

enum class Encoding : std::uint8_t {
  kPlain,
  kUnused,
  kPlainDictionary,  // numbers of dictionary entries; in a dictionary: plain
  kRuns,
  kBitPacked,  // levels of files before 2013
  kDeltaBinaryPacked,
  kDeltaLengthByteArray,
  kDeltaByteArray,
  kDictionary,  // numbers of dictionary entries
  kByteStreamSplit,
};

struct PageHeader {
  PageType type = PageType::kData;
  std::int32_t packed_size = -1, size = -1;  // bytes in the file, after the head; and decompressed
  std::optional<std::uint32_t> checksum;     // CRC-32 of the bytes in the file
  std::int32_t values = -1;                  // with nulls; of a dictionary its entries
  Encoding encoding = Encoding::kPlain;
  Encoding definition_encoding = Encoding::kRuns, repetition_encoding = Encoding::kRuns;
  // Bytes of the levels of kDataV2, which come first and are never compressed.
  std::int32_t definition_size = 0, repetition_size = 0;
  bool is_packed = true;
};

// Parses a head; `length` becomes its bytes. ByteReader::Short: it has more than `bytes`. Damaged, Unsupported: a size
// below 0, another kind of page or encoding.
PageHeader parse_page_header(std::string_view bytes, std::size_t& length);

}  // namespace teratron::parquet
