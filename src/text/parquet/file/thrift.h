// Structs in Apache Thrift's compact protocol, in which the footer and the heads of pages are written.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "parquet/file/byte_reader.h"

namespace teratron::parquet {

enum class ThriftType : std::uint8_t {
  kStop,
  kTrue,  // of a field; the type of all booleans in a list
  kFalse,
  kByte,
  kInt16,
  kInt32,
  kInt64,
  kDouble,
  kBinary,
  kList,
  kSet,
  kMap,
  kStruct,
  kUuid,
};

// Reads the fields that the caller knows and skips the others. Damaged: as ByteReader; a value of another type than the
// caller expects; structs nested deeper than 32.
class ThriftReader {
 public:
  explicit ThriftReader(std::string_view bytes) : bytes_(bytes) {}

  std::size_t position() const { return bytes_.position(); }

  // Calls visit(id) for each field of a struct. visit() reads the value by a function below; otherwise it is skipped.
  void read_struct(const std::function<void(int id)>& visit);

  // Read the value of the field that is visited.
  bool boolean();
  std::int64_t integer();
  std::int32_t small_integer();  // Damaged: more than 32 bits
  std::string_view binary();
  void structure(const std::function<void(int id)>& visit);
  // Calls visit() for each element, which it reads like a field; otherwise the element is skipped.
  void list(const std::function<void()>& visit);

 private:
  void take_type(ThriftType type, const char* wanted);
  void skip(ThriftType type);
  void skip_elements(ThriftType type, std::uint64_t count);
  ThriftType list_head(std::uint64_t& count);

  ByteReader bytes_;
  ThriftType type_ = ThriftType::kStop;  // of the value that is visited
  bool is_read_ = false;                 // whether visit() has read the value
  int depth_ = 0;
};

}  // namespace teratron::parquet
