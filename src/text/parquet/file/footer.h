// The footer of a file: its columns' types, and where their bytes are. Numbers of fields and enums are those of
// Apache's parquet.thrift.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/random_access_file.h"

namespace teratron::parquet {

enum class PhysicalType : std::uint8_t {
  kBoolean,
  kInt32,
  kInt64,
  kInt96,
  kFloat,
  kDouble,
  kByteArray,
  kFixedByteArray,
};

enum class Repetition : std::uint8_t { kRequired, kOptional, kRepeated };

enum class Codec : std::uint8_t { kNone, kSnappy, kGzip, kLzo, kBrotli, kHadoopLz4, kZstd, kLz4 };

enum class TimeUnit : std::uint8_t { kMilliseconds, kMicroseconds, kNanoseconds };

// The meaning of a column's or a group's bytes, by its logical type, or the converted type of older files.
enum class Meaning : std::uint8_t {
  kPlain,  // the physical type
  kText,
  kBytes,
  kSigned,
  kUnsigned,
  kHalf,
  kDecimal,
  kDate,
  kTime,
  kTimestamp,
  kUuid,
  kNothing,
  kInterval,
  kList,
  kMap,
};

// A node of the schema, in its order: a parent before its children.
struct SchemaElement {
  std::string name;
  std::optional<PhysicalType> type;  // none: a group
  Repetition repetition = Repetition::kRequired;
  std::int32_t children = 0;
  std::int32_t length = 0;  // of kFixedByteArray
  Meaning meaning = Meaning::kPlain;
  std::int32_t scale = 0;  // of kDecimal
  TimeUnit unit = TimeUnit::kMilliseconds;
  bool is_utc = false;  // kTimestamp: an instant; otherwise local time somewhere
};

// The bytes of a column in a row group.
struct ColumnChunk {
  std::uint64_t begin = 0, size = 0;  // of its pages in the file, with their heads
  std::int64_t values = 0;            // with nulls
  Codec codec = Codec::kNone;
  PhysicalType type = PhysicalType::kBoolean;
};

struct RowGroup {
  std::int64_t rows = 0;
  std::vector<ColumnChunk> columns;  // one for each column of the schema
};

struct Footer {
  std::vector<SchemaElement> schema;  // the first one is the root
  std::vector<RowGroup> row_groups;
  std::int64_t rows = 0;
};

// Reads the whole footer. Damaged: the file does not end as Parquet does, or a number contradicts others or the file's
// size. Unsupported: an encrypted file, columns in other files.
Footer read_footer(const RandomAccessFile& file);

// Reads the bytes of a footer, without its length, in a file of `file_size` bytes.
Footer parse_footer(std::string_view bytes, std::uint64_t file_size);

}  // namespace teratron::parquet
