#include "parquet/file/page_header.h"

#include "parquet/file/thrift.h"

namespace teratron::parquet {
namespace {

Encoding read_encoding(ThriftReader& reader) {
  const std::int32_t value = reader.small_integer();
  if (value < 0 || value > static_cast<int>(Encoding::kByteStreamSplit) || value == 1) {
    throw_unsupported("values in the encoding {}", value);
  }
  return static_cast<Encoding>(value);
}

void read_data_header(ThriftReader& reader, PageHeader& header) {
  reader.structure([&](int id) {
    switch (id) {
      case 1: header.values = reader.small_integer(); return;
      case 2: header.encoding = read_encoding(reader); return;
      case 3: header.definition_encoding = read_encoding(reader); return;
      case 4: header.repetition_encoding = read_encoding(reader); return;
      default: return;
    }
  });
}

void read_dictionary_header(ThriftReader& reader, PageHeader& header) {
  reader.structure([&](int id) {
    if (id == 1) header.values = reader.small_integer();
    if (id == 2) header.encoding = read_encoding(reader);
  });
}

void read_data_header_v2(ThriftReader& reader, PageHeader& header) {
  reader.structure([&](int id) {
    switch (id) {
      case 1: header.values = reader.small_integer(); return;
      case 4: header.encoding = read_encoding(reader); return;
      case 5: header.definition_size = reader.small_integer(); return;
      case 6: header.repetition_size = reader.small_integer(); return;
      case 7: header.is_packed = reader.boolean(); return;
      default: return;
    }
  });
}

}  // namespace

PageHeader parse_page_header(std::string_view bytes, std::size_t& length) {
  PageHeader header;
  ThriftReader reader(bytes);
  std::int32_t type = -1;
  reader.read_struct([&](int id) {
    switch (id) {
      case 1: type = reader.small_integer(); return;
      case 2: header.size = reader.small_integer(); return;
      case 3: header.packed_size = reader.small_integer(); return;
      case 4: header.checksum = static_cast<std::uint32_t>(reader.small_integer()); return;
      case 5: return read_data_header(reader, header);
      case 7: return read_dictionary_header(reader, header);
      case 8: return read_data_header_v2(reader, header);
      default: return;
    }
  });
  length = reader.position();
  if (type < 0 || type > static_cast<int>(PageType::kDataV2)) throw_unsupported("pages of the kind {}", type);
  header.type = static_cast<PageType>(type);
  const bool has_values = header.type != PageType::kIndex;
  const std::int64_t levels = std::int64_t{header.definition_size} + header.repetition_size;
  const bool is_sane = header.size >= 0 && header.packed_size >= 0 && header.definition_size >= 0 &&
                       header.repetition_size >= 0 && levels <= header.size && levels <= header.packed_size;
  if (!is_sane || (has_values && header.values < 0)) throw_damaged("the head of a page has impossible sizes");
  return header;
}

}  // namespace teratron::parquet
