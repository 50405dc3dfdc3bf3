#include "telemetry/event_record.h"

#include <array>
#include <bit>
#include <cstring>

namespace teratron {
namespace {

static_assert(std::endian::native == std::endian::little, "both formats are little-endian");

constexpr std::size_t kHeaderBytes = 12, kFooterBytes = 4;  // length and its checksum; the message's

constexpr std::array<std::uint32_t, 256> crc_table() {
  constexpr std::uint32_t kReversedPolynomial = 0x82F63B78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kReversedPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}

// Masks a checksum, so that data that contain checksums get a different one.
std::uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8; }

template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

template <class T>
T value_of(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// Protobuf writes the number and kind of a field, then its value.
enum Kind : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7F));
  return bytes + static_cast<char>(value);
}

std::string field_key(std::uint32_t number, Kind kind) { return varint(number << 3 | kind); }
std::string field(std::uint32_t number, std::string_view bytes) {
  return field_key(number, kBytes) + varint(bytes.size()) + std::string(bytes);
}
std::string field(std::uint32_t number, std::int64_t value) {
  return field_key(number, kVarint) + varint(static_cast<std::uint64_t>(value));
}
std::string field(std::uint32_t number, double value) { return field_key(number, kFixed64) + bytes_of(value); }
std::string field(std::uint32_t number, float value) { return field_key(number, kFixed32) + bytes_of(value); }

// Field numbers of the messages.
struct EventField {
  static constexpr std::uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
};
struct SummaryField {
  static constexpr std::uint32_t kValue = 1;
};
struct ValueField {
  static constexpr std::uint32_t kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;
};

// A tensor of one string, for the plug-in that shows text.
std::string text_value(const std::string& text) {
  constexpr std::uint32_t kPluginData = 1, kPluginName = 1;          // of SummaryMetadata, of its PluginData
  constexpr std::uint32_t kDtype = 1, kShape = 2, kStringValue = 8;  // of TensorProto
  constexpr std::uint32_t kDimension = 2, kSize = 1;                 // of TensorShapeProto, of its Dim
  constexpr std::int64_t kString = 7;                                // of DataType
  const std::string plugin = field(kPluginData, field(kPluginName, std::string_view("text")));
  const std::string shape = field(kDimension, field(kSize, std::int64_t{1}));
  return field(ValueField::kTensor, field(kDtype, kString) + field(kShape, shape) + field(kStringValue, text)) +
         field(ValueField::kMetadata, plugin);
}

// Reads the fields of a message, in order.
class MessageReader {
 public:
  explicit MessageReader(std::string_view message) : rest_(message) {}

  struct Value {
    std::uint32_t number = 0;
    std::uint64_t integer = 0;  // kVarint
    std::string_view bytes;     // the other kinds
  };

  // Next field; nullopt at the end or in data that is no message.
  std::optional<Value> next() {
    const std::optional<std::uint64_t> key = read_varint();
    if (!key) return std::nullopt;
    Value value{.number = static_cast<std::uint32_t>(*key >> 3)};
    std::optional<std::uint64_t> length;
    switch (*key & 7) {
      case kVarint:
        if (const auto integer = read_varint()) {
          value.integer = *integer;
          return value;
        }
        return std::nullopt;
      case kFixed64: length = 8; break;
      case kFixed32: length = 4; break;
      case kBytes: length = read_varint(); break;
      default: break;
    }
    if (!length || *length > rest_.size()) return std::nullopt;
    value.bytes = rest_.substr(0, *length);
    rest_.remove_prefix(*length);
    return value;
  }

  // The first field with this number.
  static std::optional<Value> find(std::string_view message, std::uint32_t number) {
    MessageReader reader(message);
    for (std::optional<Value> value; (value = reader.next());) {
      if (value->number == number) return value;
    }
    return std::nullopt;
  }

 private:
  std::optional<std::uint64_t> read_varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::string_view rest_;
};

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = crc_table();
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

std::string record_of(const Event& event) {
  std::string message = field(EventField::kWallTime, event.wall_time);
  if (event.step != 0) message += field(EventField::kStep, event.step);  // protobuf omits 0
  if (!event.file_version.empty()) message += field(EventField::kFileVersion, event.file_version);
  std::string summary;
  const auto add = [&](const std::string& tag, const std::string& value) {
    summary += field(SummaryField::kValue, field(ValueField::kTag, tag) + value);
  };
  for (const auto& [tag, value] : event.scalars) add(tag, field(ValueField::kSimpleValue, value));
  for (const auto& [tag, text] : event.texts) add(tag, text_value(text));
  if (!summary.empty()) message += field(EventField::kSummary, summary);
  const std::string length = bytes_of(static_cast<std::uint64_t>(message.size()));
  return length + bytes_of(masked_crc(length)) + message + bytes_of(masked_crc(message));
}

std::optional<EventRecord> first_record(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes + kFooterBytes) return std::nullopt;
  const std::string_view length_bytes = bytes.substr(0, 8);
  const auto length = value_of<std::uint64_t>(length_bytes);
  if (masked_crc(length_bytes) != value_of<std::uint32_t>(bytes.substr(8))) return std::nullopt;
  if (length > bytes.size() - kHeaderBytes - kFooterBytes) return std::nullopt;
  const std::string_view message = bytes.substr(kHeaderBytes, length);
  if (masked_crc(message) != value_of<std::uint32_t>(bytes.substr(kHeaderBytes + length))) return std::nullopt;
  EventRecord record{.bytes = bytes.substr(0, kHeaderBytes + length + kFooterBytes)};
  if (const auto step = MessageReader::find(message, EventField::kStep)) {
    record.step = static_cast<std::int64_t>(step->integer);
  }
  const auto summary = MessageReader::find(message, EventField::kSummary);
  const auto value = summary ? MessageReader::find(summary->bytes, SummaryField::kValue) : std::nullopt;
  const auto tag = value ? MessageReader::find(value->bytes, ValueField::kTag) : std::nullopt;
  if (tag) record.tag = tag->bytes;
  return record;
}

}  // namespace teratron
