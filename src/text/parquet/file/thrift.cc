#include "parquet/file/thrift.h"

#include <limits>
#include <utility>

namespace teratron::parquet {
namespace {

constexpr int kDeepestStruct = 32;

ThriftType thrift_type_of(unsigned bits) {
  if (bits > static_cast<unsigned>(ThriftType::kUuid)) throw_damaged("its table of contents has a type {}", bits);
  return static_cast<ThriftType>(bits);
}

}  // namespace

void ThriftReader::read_struct(const std::function<void(int id)>& visit) {
  if (++depth_ > kDeepestStruct) throw_damaged("its table of contents nests too deep");
  std::int64_t id = 0;
  while (true) {
    const auto head = bytes_.number<std::uint8_t>();
    const ThriftType type = thrift_type_of(head & 0xFU);
    if (type == ThriftType::kStop) break;
    const unsigned difference = head >> 4;
    id = difference > 0 ? id + difference : bytes_.zigzag();
    if (id < std::numeric_limits<std::int16_t>::min() || id > std::numeric_limits<std::int16_t>::max()) {
      throw_damaged("its table of contents has a field {}", id);
    }
    type_ = type;
    is_read_ = false;
    visit(static_cast<int>(id));
    if (!is_read_) skip(type);
  }
  --depth_;
}

void ThriftReader::take_type(ThriftType type, const char* wanted) {
  if (type_ != type || is_read_) throw_damaged("its table of contents has something else in the place of {}", wanted);
  is_read_ = true;
}

bool ThriftReader::boolean() {
  const bool value = type_ == ThriftType::kTrue;
  take_type(value ? ThriftType::kTrue : ThriftType::kFalse, "a boolean");
  return value;
}

std::int64_t ThriftReader::integer() {
  if (type_ == ThriftType::kByte) {
    take_type(type_, "a number");
    return bytes_.number<std::int8_t>();
  }
  const bool is_integer = type_ == ThriftType::kInt16 || type_ == ThriftType::kInt32 || type_ == ThriftType::kInt64;
  take_type(is_integer ? type_ : ThriftType::kInt64, "a number");
  return bytes_.zigzag();
}

std::int32_t ThriftReader::small_integer() {
  const std::int64_t value = integer();
  if (!std::in_range<std::int32_t>(value)) throw_damaged("its table of contents has a number {}", value);
  return static_cast<std::int32_t>(value);
}

std::string_view ThriftReader::binary() {
  take_type(ThriftType::kBinary, "a text");
  return bytes_.take(bytes_.varint());
}

void ThriftReader::structure(const std::function<void(int id)>& visit) {
  take_type(ThriftType::kStruct, "a struct");
  read_struct(visit);
  is_read_ = true;  // its fields have changed it
}

ThriftType ThriftReader::list_head(std::uint64_t& count) {
  const auto head = bytes_.number<std::uint8_t>();
  constexpr unsigned kCountFollows = 15;
  count = head >> 4;
  if (count == kCountFollows) count = bytes_.varint();
  const ThriftType type = thrift_type_of(head & 0xFU);
  if (count > bytes_.left()) throw ByteReader::Short("its table of contents breaks off in a list");
  return type;
}

void ThriftReader::list(const std::function<void()>& visit) {
  take_type(ThriftType::kList, "a list");
  std::uint64_t count = 0;
  const ThriftType type = list_head(count);
  for (; count > 0; --count) {
    type_ = type;
    is_read_ = false;
    visit();
    if (!is_read_) skip_elements(type, 1);
  }
  is_read_ = true;
}

// Booleans of a list take a byte each, those of a field are its type.
void ThriftReader::skip_elements(ThriftType type, std::uint64_t count) {
  if (++depth_ > kDeepestStruct) throw_damaged("its table of contents nests too deep");
  for (; count > 0; --count) {
    if (type == ThriftType::kTrue || type == ThriftType::kFalse) {
      bytes_.take(1);
    } else {
      skip(type);
    }
  }
  --depth_;
}

void ThriftReader::skip(ThriftType type) {
  std::uint64_t count = 0;
  switch (type) {
    case ThriftType::kStop: throw_damaged("its table of contents has a value without a type");
    case ThriftType::kTrue:
    case ThriftType::kFalse: return;
    case ThriftType::kByte: bytes_.take(1); return;
    case ThriftType::kInt16:
    case ThriftType::kInt32:
    case ThriftType::kInt64: bytes_.varint(); return;
    case ThriftType::kDouble: bytes_.take(8); return;
    case ThriftType::kUuid: bytes_.take(16); return;
    case ThriftType::kBinary: bytes_.take(bytes_.varint()); return;
    case ThriftType::kStruct: read_struct([](int) {}); return;
    case ThriftType::kList:
    case ThriftType::kSet: {
      const ThriftType elements = list_head(count);
      skip_elements(elements, count);
      return;
    }
    case ThriftType::kMap: {
      count = bytes_.varint();
      if (count == 0) return;
      if (count > bytes_.left()) throw ByteReader::Short("its table of contents breaks off in a map");
      const auto types = bytes_.number<std::uint8_t>();
      for (; count > 0; --count) {
        skip_elements(thrift_type_of(types >> 4), 1);
        skip_elements(thrift_type_of(types & 0xFU), 1);
      }
      return;
    }
  }
}

}  // namespace teratron::parquet
