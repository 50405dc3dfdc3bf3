#include "parquet/file/footer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include "parquet/file/thrift.h"

namespace teratron::parquet {
namespace {

constexpr std::string_view kMagic = "PAR1", kEncryptedMagic = "PARE";
constexpr std::size_t kTailBytes = 8;  // the footer's length, and the magic
constexpr std::size_t kMostColumns = 100'000;

template <class Enum>
Enum enum_of(std::int32_t value, Enum last, const char* what) {
  if (value < 0 || value > static_cast<int>(last)) throw_unsupported("{} {}", what, value);
  return static_cast<Enum>(value);
}

// parquet.thrift's ConvertedType, which older writers leave alone with.
void take_converted_type(std::int32_t converted, SchemaElement& element) {
  constexpr auto kMeanings = std::to_array<Meaning>({
      Meaning::kText,       // UTF8
      Meaning::kMap,        // MAP
      Meaning::kMap,        // MAP_KEY_VALUE
      Meaning::kList,       // LIST
      Meaning::kText,       // ENUM
      Meaning::kDecimal,    // DECIMAL
      Meaning::kDate,       // DATE
      Meaning::kTime,       // TIME_MILLIS
      Meaning::kTime,       // TIME_MICROS
      Meaning::kTimestamp,  // TIMESTAMP_MILLIS
      Meaning::kTimestamp,  // TIMESTAMP_MICROS
      Meaning::kUnsigned,   // UINT_8
      Meaning::kUnsigned,   // UINT_16
      Meaning::kUnsigned,   // UINT_32
      Meaning::kUnsigned,   // UINT_64
      Meaning::kSigned,     // INT_8
      Meaning::kSigned,     // INT_16
      Meaning::kSigned,     // INT_32
      Meaning::kSigned,     // INT_64
      Meaning::kText,       // JSON
      Meaning::kBytes,      // BSON
      Meaning::kInterval,   // INTERVAL
  });
  constexpr std::int32_t kTimeMicros = 8, kTimestampMicros = 10;
  if (converted < 0 || std::cmp_greater_equal(converted, kMeanings.size())) return;
  element.meaning = kMeanings[static_cast<std::size_t>(converted)];
  const bool is_fine = converted == kTimeMicros || converted == kTimestampMicros;
  element.unit = is_fine ? TimeUnit::kMicroseconds : TimeUnit::kMilliseconds;
  element.is_utc = element.meaning == Meaning::kTimestamp;
}

void read_time(ThriftReader& reader, SchemaElement& element) {
  reader.structure([&](int id) {
    if (id == 1) element.is_utc = reader.boolean();
    if (id != 2) return;
    reader.structure([&](int unit) {
      constexpr int kNanoseconds = 3;
      if (unit >= 1 && unit <= kNanoseconds) element.unit = static_cast<TimeUnit>(unit - 1);
    });
  });
}

// parquet.thrift's LogicalType, a union.
void read_logical_type(ThriftReader& reader, SchemaElement& element) {
  reader.structure([&](int id) {
    switch (id) {
      case 1:   // STRING
      case 4:   // ENUM
      case 12:  // JSON
        element.meaning = Meaning::kText;
        return;
      case 2: element.meaning = Meaning::kMap; return;
      case 3: element.meaning = Meaning::kList; return;
      case 5:
        element.meaning = Meaning::kDecimal;
        reader.structure([&](int field) {
          if (field == 1) element.scale = reader.small_integer();
        });
        return;
      case 6: element.meaning = Meaning::kDate; return;
      case 7: element.meaning = Meaning::kTime; return read_time(reader, element);
      case 8: element.meaning = Meaning::kTimestamp; return read_time(reader, element);
      case 10:
        reader.structure([&](int field) {
          if (field == 2) element.meaning = reader.boolean() ? Meaning::kSigned : Meaning::kUnsigned;
        });
        return;
      case 11: element.meaning = Meaning::kNothing; return;
      case 14: element.meaning = Meaning::kUuid; return;
      case 15: element.meaning = Meaning::kHalf; return;
      default: element.meaning = element.type ? Meaning::kBytes : Meaning::kPlain;  // BSON, VARIANT, and later ones
    }
  });
}

// The meaning counts where the physical type can have it.
bool can_mean(const SchemaElement& element) {
  const auto is = [&](auto... types) { return ((element.type == types) || ...); };
  const bool is_bytes = is(PhysicalType::kByteArray, PhysicalType::kFixedByteArray);
  switch (element.meaning) {
    case Meaning::kPlain:
    case Meaning::kNothing: return true;
    case Meaning::kText:
    case Meaning::kBytes: return is_bytes;
    case Meaning::kSigned:
    case Meaning::kUnsigned: return is(PhysicalType::kInt32, PhysicalType::kInt64);
    case Meaning::kHalf: return is(PhysicalType::kFixedByteArray) && element.length == 2;
    case Meaning::kDecimal: return is_bytes || is(PhysicalType::kInt32, PhysicalType::kInt64);
    case Meaning::kDate: return is(PhysicalType::kInt32);
    case Meaning::kTime:
      return is(element.unit == TimeUnit::kMilliseconds ? PhysicalType::kInt32 : PhysicalType::kInt64);
    case Meaning::kTimestamp: return is(PhysicalType::kInt64);
    case Meaning::kUuid: return is(PhysicalType::kFixedByteArray) && element.length == 16;
    case Meaning::kInterval: return is(PhysicalType::kFixedByteArray) && element.length == 12;
    case Meaning::kList:
    case Meaning::kMap: return !element.type;
  }
  return false;
}

SchemaElement read_schema_element(ThriftReader& reader) {
  SchemaElement element;
  bool has_name = false, has_logical_type = false;
  reader.structure([&](int id) {
    switch (id) {
      case 1:
        element.type = enum_of(reader.small_integer(), PhysicalType::kFixedByteArray, "columns of the physical type");
        return;
      case 2: element.length = reader.small_integer(); return;
      case 3:
        element.repetition = enum_of(reader.small_integer(), Repetition::kRepeated, "columns of the repetition");
        return;
      case 4:
        element.name = reader.binary();
        has_name = true;
        return;
      case 5: element.children = reader.small_integer(); return;
      case 6:
        if (!has_logical_type) take_converted_type(reader.small_integer(), element);
        return;
      case 7: element.scale = reader.small_integer(); return;
      case 10: has_logical_type = true; return read_logical_type(reader, element);
      default: return;
    }
  });
  if (!has_name || element.children < 0) throw_damaged("its schema is not whole");
  if (element.type == PhysicalType::kFixedByteArray && element.length < 1) {
    throw_damaged("its column '{}' has values of {} bytes", element.name, element.length);
  }
  if (!can_mean(element)) element.meaning = Meaning::kPlain;
  return element;
}

struct ChunkPlace {
  std::optional<std::int64_t> data, dictionary, size, values;
  std::optional<PhysicalType> type;
  Codec codec = Codec::kNone;
};

void read_column_metadata(ThriftReader& reader, ChunkPlace& place) {
  reader.structure([&](int id) {
    switch (id) {
      case 1:
        place.type = enum_of(reader.small_integer(), PhysicalType::kFixedByteArray, "columns of the physical type");
        return;
      case 4: place.codec = enum_of(reader.small_integer(), Codec::kLz4, "columns compressed by the codec"); return;
      case 5: place.values = reader.integer(); return;
      case 7: place.size = reader.integer(); return;
      case 9: place.data = reader.integer(); return;
      case 11: place.dictionary = reader.integer(); return;
      default: return;
    }
  });
}

ColumnChunk read_column_chunk(ThriftReader& reader, std::uint64_t file_size) {
  ChunkPlace place;
  reader.structure([&](int id) {
    switch (id) {
      case 1:
        if (!reader.binary().empty()) throw_unsupported("columns that lie in other files");
        return;
      case 3: return read_column_metadata(reader, place);
      case 8:
      case 9: throw_unsupported("encrypted columns");
      default: return;
    }
  });
  if (!place.type || !place.data || !place.size || !place.values) {
    throw_damaged("its table of contents does not say where a column is");
  }
  // Some writers give 0 for no dictionary.
  const bool has_dictionary = place.dictionary.value_or(0) > 0 && *place.dictionary < *place.data;
  const std::int64_t begin = has_dictionary ? *place.dictionary : *place.data;
  const bool is_inside = begin >= 0 && *place.size >= 0 && std::cmp_less_equal(begin, file_size) &&
                         std::cmp_less_equal(*place.size, file_size - static_cast<std::uint64_t>(begin));
  if (!is_inside || *place.values < 0) throw_damaged("a column lies outside of the file, or has no number of values");
  return {.begin = static_cast<std::uint64_t>(begin),
          .size = static_cast<std::uint64_t>(*place.size),
          .values = *place.values,
          .codec = place.codec,
          .type = *place.type};
}

RowGroup read_row_group(ThriftReader& reader, std::uint64_t file_size) {
  RowGroup group;
  bool has_rows = false;
  reader.structure([&](int id) {
    if (id == 1) {
      reader.list([&] { group.columns.push_back(read_column_chunk(reader, file_size)); });
    } else if (id == 3) {
      group.rows = reader.integer();
      has_rows = true;
    }
  });
  if (!has_rows || group.rows < 0) throw_damaged("a row group has no number of rows");
  return group;
}

// Fields come in any order, so this is asked when all are read.
void require_whole(const Footer& footer, std::int64_t said_rows) {
  if (footer.schema.empty()) throw_damaged("its table of contents has no schema");
  const std::int64_t columns =
      std::ranges::count_if(footer.schema, [](const SchemaElement& element) { return element.type.has_value(); });
  for (const RowGroup& group : footer.row_groups) {
    if (std::ssize(group.columns) != columns) throw_damaged("a row group has not the schema's columns");
  }
  if (footer.rows != said_rows) {
    throw_damaged("it is to have {} rows, and its row groups have {}", said_rows, footer.rows);
  }
}

}  // namespace

Footer parse_footer(std::string_view bytes, std::uint64_t file_size) {
  Footer footer;
  ThriftReader reader(bytes);
  bool has_schema = false, has_row_groups = false;
  const auto require_first = [](bool& is_there) {
    if (std::exchange(is_there, true)) throw_damaged("its table of contents has two schemas, or row groups twice");
  };
  std::int64_t said_rows = -1;
  reader.read_struct([&](int id) {
    switch (id) {
      case 2:
        require_first(has_schema);
        reader.list([&] {
          footer.schema.push_back(read_schema_element(reader));
          if (footer.schema.size() > kMostColumns) throw_unsupported("more than {} columns", kMostColumns);
        });
        return;
      case 3: said_rows = reader.integer(); return;
      case 4:
        require_first(has_row_groups);
        reader.list([&] {
          footer.row_groups.push_back(read_row_group(reader, file_size));
          const std::int64_t rows = footer.row_groups.back().rows;
          if (rows > std::numeric_limits<std::int64_t>::max() - footer.rows) throw_damaged("it has too many rows");
          footer.rows += rows;
        });
        return;
      case 8: throw_unsupported("encrypted columns");
      default: return;
    }
  });
  require_whole(footer, said_rows);
  return footer;
}

Footer read_footer(const RandomAccessFile& file) {
  const std::uint64_t size = file.size();
  std::array<char, kTailBytes> tail{};
  if (size < kMagic.size() + kTailBytes) throw_damaged("it has {} bytes", size);
  file.read(size - kTailBytes, std::as_writable_bytes(std::span(tail)));
  const std::string_view end(tail.data(), tail.size());
  if (end.ends_with(kEncryptedMagic)) throw_unsupported("an encrypted table of contents");
  if (!end.ends_with(kMagic)) throw_damaged("it does not end with PAR1, so it is cut short or was never finished");
  const auto length = number_at<std::uint32_t>(end);
  if (length > size - kTailBytes - kMagic.size()) {
    throw_damaged("its table of contents is to have {} bytes, and the file has {}", length, size);
  }
  std::string bytes(length, '\0');
  file.read(size - kTailBytes - length, std::as_writable_bytes(std::span(bytes)));
  return parse_footer(bytes, size - kTailBytes - length);
}

}  // namespace teratron::parquet
